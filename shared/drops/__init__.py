"""Drops: uploaded folders that become runs."""
