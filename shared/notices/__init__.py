"""Notices: messages to subscribers about runs, clusters, budgets and poison messages."""
