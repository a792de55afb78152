"""Queues and their messages."""
