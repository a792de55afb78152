"""The store of grants."""
