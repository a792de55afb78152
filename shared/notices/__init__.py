"""Notices: what people are told of runs, clusters, budgets and messages, where they asked to be told."""
