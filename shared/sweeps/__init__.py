"""Sweeps: many trials of one training, drawn from a search space. Each trial is a run, and so is the sweep."""
