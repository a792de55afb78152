"""Experiments on nodes: evictions, and the checks after a deployment."""
