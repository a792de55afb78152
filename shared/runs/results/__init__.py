"""A run's results: metrics, logs, files, and the archive."""
