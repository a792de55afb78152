"""Runs: one training each, from submission to archive."""
