"""Elastic runs: train on however many nodes are available, as single-node jobs that meet in a table."""
