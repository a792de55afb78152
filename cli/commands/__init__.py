"""One module for each family of commands. Importing this package registers all of them."""

from ..session import app
from . import (
    admin,
    batchai,
    clusters,
    cost,
    data,
    drop,
    evict,
    fetch,
    logs,
    models,
    notes_and_tags,
    notify,
    predict,
    runs,
    schedule,
    setup,
    storage,
)

__all__ = [
    "GROUPS",
    "ORDER",
    "admin",
    "batchai",
    "clusters",
    "cost",
    "data",
    "drop",
    "evict",
    "fetch",
    "logs",
    "models",
    "notes_and_tags",
    "notify",
    "predict",
    "runs",
    "schedule",
    "setup",
    "storage",
]

# As --help and docs/cli.md show them: start something, look at it, take it home, look after the system, set up.
ORDER = (
    *(
        "submit",
        "drop",
        "runs",
        "compare",
        "show",
        "logs",
        "metrics",
        "fetch",
        "predict",
        "promote",
        "models",
        "verify",
        "why",
        "reproduce",
        "cancel",
        "retry",
        "continue",
        "note",
        "tag",
        "import",
        "run",
    ),
    *(
        "clusters",
        "cost",
        "lease",
        "leases",
        "extend",
        "release",
        "pause",
        "evict",
        "status",
        "du",
        "rm",
        "doctor",
        "open",
        "completion",
        "login",
        "logout",
    ),
)

GROUPS = {  # of `trainyard data` and so on
    "data": ("log", "diff", "files"),
    "schedule": ("add", "list", "log", "pause", "resume", "remove"),
    "notify": ("add", "list", "test", "log", "remove"),
    "admin": ("register", "smoke", "replay"),
}

app.registered_commands.sort(key=lambda registered: ORDER.index(registered.name or ""))
