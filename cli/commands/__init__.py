"""One module for each family of commands. Importing a module registers its commands; `load` imports what is needed."""

from collections.abc import Sequence
from importlib import import_module

import typer

from ..session import app

# Each command's module, in the order in which --help and docs/cli.md show the commands: start something, look at it,
# take it home, look after the system, set up.
COMMANDS = {
    "submit": "runs",
    "drop": "drop",
    "runs": "runs",
    "compare": "runs",
    "show": "runs",
    "logs": "logs",
    "metrics": "logs",
    "fetch": "fetch",
    "predict": "predict",
    "promote": "models",
    "models": "models",
    "verify": "models",
    "why": "models",
    "reproduce": "models",
    "cancel": "runs",
    "retry": "runs",
    "continue": "runs",
    "note": "notes_and_tags",
    "tag": "notes_and_tags",
    "import": "batchai",
    "run": "batchai",
    "clusters": "clusters",
    "cost": "cost",
    "lease": "clusters",
    "leases": "clusters",
    "extend": "clusters",
    "release": "clusters",
    "pause": "clusters",
    "evict": "evict",
    "status": "clusters",
    "du": "storage",
    "rm": "storage",
    "doctor": "setup",
    "open": "setup",
    "completion": "setup",
    "login": "setup",
    "logout": "setup",
}

GROUPS = {  # of `trainyard data` and so on; each is a module of its own
    "data": ("log", "diff", "files"),
    "schedule": ("add", "list", "log", "pause", "resume", "remove"),
    "notify": ("add", "list", "test", "log", "remove"),
    "admin": ("register", "smoke", "replay"),
}


def load(argv: Sequence[str] = ()) -> typer.Typer:
    """The app with the family of the command that these arguments call; with all, where they name none (--help)."""
    name = argv[0] if argv else ""
    wanted = [COMMANDS.get(name, name)] if name in COMMANDS or name in GROUPS else [*COMMANDS.values(), *GROUPS]
    for module in dict.fromkeys(wanted):
        import_module(f"{__name__}.{module}")
    order = list(COMMANDS)
    app.registered_commands.sort(key=lambda registered: order.index(registered.name or ""))
    return app
