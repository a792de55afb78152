"""Grants: another program may spend a limited amount, on named things, until a set time."""
