"""One module for each family of commands. Importing a module registers its commands; `load` imports what is needed."""

from collections.abc import Sequence
from importlib import import_module

import typer
from typer.models import CommandInfo

from ..command_list import COMMANDS, GROUPS
from ..session import app

# In the order in which --help and docs/cli.md show their commands: start something, look at it, take it home, look
# after the system, set up. Each group of commands, such as `trainyard data`, is a module of its own.
FAMILIES = (
    "runs", "drop", "logs", "fetch", "predict", "models", "notes_and_tags", "batchai", "clusters", "cost", "evict",
    "storage", "setup",
)  # fmt: skip


def load(argv: Sequence[str] = ()) -> typer.Typer:
    """The app with the family of the command that these arguments call; with all, where they name none (--help), or one
    that the list of commands does not have yet."""
    name = argv[0] if argv else ""
    family = COMMANDS[name][0] if name in COMMANDS else name if name in GROUPS else ""
    for module in [family] if family else [*FAMILIES, *GROUPS]:
        import_module(f"{__name__}.{module}")
    app.registered_commands.sort(key=lambda registered: FAMILIES.index(family_of(registered)))
    return app


def family_of(registered: CommandInfo) -> str:
    """The module of a command."""
    return registered.callback.__module__.rpartition(".")[2] if registered.callback else ""
