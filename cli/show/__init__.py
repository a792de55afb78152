"""Terminal output for the API's answers, one module for each noun. The functions take values and return
renderables."""

from . import clusters, drops, health, models, notices, plan, runs, schedules, storage, tables

__all__ = ["clusters", "drops", "health", "models", "notices", "plan", "runs", "schedules", "storage", "tables"]
