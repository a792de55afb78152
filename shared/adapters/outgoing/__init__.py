"""Outgoing requests: lifecycle events, notices, and price queries."""
