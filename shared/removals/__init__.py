"""Removals: what uses space, what a person or a route's retention deletes, and the record of each removal."""
