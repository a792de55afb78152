"""What people see of runs: lists, logs, curves, comparisons."""
