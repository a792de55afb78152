"""Batch AI documents (job.json, cluster.json and project.json): reading, translation, and a report on every field."""
