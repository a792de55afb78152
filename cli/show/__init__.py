"""Terminal output for the API's answers, one module for each noun. The functions take values and return
renderables."""

from . import clusters, drops, health, models, notices, runs, schedules, storage, tables

__all__ = ["clusters", "drops", "health", "models", "notices", "runs", "schedules", "storage", "tables"]
