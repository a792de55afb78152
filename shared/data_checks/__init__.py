"""Data checks: bad data is refused when a drop closes, before a node is paid for.

The rules of the formats are in trainers/data_checks. rule.py says how a route's drops are checked, at_sealing.py checks
a complete drop, listing.py a list of files, and cards.py answers with what is kept.
"""
