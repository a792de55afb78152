"""Sweeps: many trials of one training, drawn from a search space; each trial is a run, and so is the whole."""
