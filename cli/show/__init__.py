"""What the API answers, made into something to print: a module for each noun. Values in, renderables out."""

from . import clusters, drops, health, models, notices, runs, schedules, storage, tables

__all__ = ["clusters", "drops", "health", "models", "notices", "runs", "schedules", "storage", "tables"]
