"""Readers of foreign formats: they convert a job of any format to a JobSpec, and Azure ML's statuses to ours."""
