"""Tables and their entities."""
