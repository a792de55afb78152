"""Sweeps: many trials of one training, drawn from a search space. The sweep and each trial are runs."""
