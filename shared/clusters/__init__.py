"""Clusters, and the sweep that scales them to zero."""
