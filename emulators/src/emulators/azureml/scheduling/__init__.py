"""Scheduling: the jobs that run next, and their nodes."""
