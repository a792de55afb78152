"""Schedules: runs that are made at instants of a calendar, or when enough new files have come."""
