"""Runs: one training each, from the request to the archive."""
