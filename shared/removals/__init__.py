"""Removals: used space, deletions by a person or by a route's retention, and the record of each removal."""
