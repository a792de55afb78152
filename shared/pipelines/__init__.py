"""Pipelines: runs whose job has several steps."""
