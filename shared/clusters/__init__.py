"""Clusters, and the timer for scaling clusters to zero."""
