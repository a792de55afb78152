"""Scheduling: the next jobs to run, and the jobs' nodes."""
