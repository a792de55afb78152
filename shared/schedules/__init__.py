"""Schedules: make runs at calendar instants, or when enough new files have arrived."""
