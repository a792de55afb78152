"""Clusters, and the timer that scales them to zero."""
