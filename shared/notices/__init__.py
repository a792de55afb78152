"""Notices: what subscribers are told of runs, clusters, budgets and messages."""
