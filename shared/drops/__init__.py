"""Drops: folders of uploads that become runs."""
