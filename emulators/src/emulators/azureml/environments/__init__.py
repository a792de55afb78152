"""Environments of jobs: what they ask for, and how they are made on this machine."""
