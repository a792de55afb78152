"""Environments of jobs: their definitions, and their installation on this machine."""
