"""Data checks: bad data is refused when a drop closes, before a node costs money.

The rules of the formats are in trainers/data_checks. rule.py reads how a route's drops are checked, at_sealing.py
checks a complete drop, listing.py checks a list of files, and cards.py returns the stored results.
"""
