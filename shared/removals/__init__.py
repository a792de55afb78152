"""Removals: what takes the space, what is deleted by hand or by a route's retention, and the record of it."""
