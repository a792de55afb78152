"""Grants: another program may spend so much, on this, until then, and nothing else."""
