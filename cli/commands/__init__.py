"""The families of commands, one module each. Importing a module registers its commands; `load` imports only the needed
modules.
"""

from collections.abc import Sequence
from importlib import import_module

import typer
from typer.models import CommandInfo

from ..command_list import COMMANDS, GROUPS
from ..session import app

# In the order in which --help and docs/cli.md show their commands: start, inspect, download, operate, set up. Each
# group of commands, such as `trainyard data`, has its own module.
FAMILIES = (
    "runs", "drop", "logs", "fetch", "predict", "models", "signing_keys", "notes_and_tags", "batchai", "clusters",
    "cost", "evict", "storage", "agents", "setup",
)  # fmt: skip


def load(argv: Sequence[str] = ()) -> typer.Typer:
    """Return the app with the family of the command in these arguments. Every family is loaded for arguments without a
    command (--help), or with a command missing from command_list.py.
    """
    name = argv[0] if argv else ""
    family = COMMANDS[name][0] if name in COMMANDS else name if name in GROUPS else ""
    for module in [family] if family else [*FAMILIES, *GROUPS]:
        import_module(f"{__name__}.{module}")
    app.registered_commands.sort(key=lambda registered: FAMILIES.index(family_of(registered)))
    return app


def family_of(registered: CommandInfo) -> str:
    """Return the name of a command's module."""
    return registered.callback.__module__.rpartition(".")[2] if registered.callback else ""
