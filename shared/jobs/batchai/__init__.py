"""Batch AI's documents: job.json, cluster.json, and project.json, read, translated, and accounted for by field."""
