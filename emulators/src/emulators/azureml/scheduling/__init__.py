"""Scheduling: which jobs run next, and on which nodes."""
