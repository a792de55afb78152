"""Readers at the edge to foreign schemas: from a job in any format to a JobSpec, and from Azure ML's statuses to
ours.
"""
