"""Blobs and their containers."""
