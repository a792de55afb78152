"""Terminal output for the API's answers, one module for each noun. The functions take values and return
renderables."""

from . import clusters, data_cards, drops, grants, health, models, notices, plan, runs, schedules, storage, tables

__all__ = [
    "clusters",
    "data_cards",
    "drops",
    "grants",
    "health",
    "models",
    "notices",
    "plan",
    "runs",
    "schedules",
    "storage",
    "tables",
]
