"""Clusters, and the sweep that brings them to zero."""
