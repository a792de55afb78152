"""Views of runs for people: lists, logs, curves, comparisons."""
