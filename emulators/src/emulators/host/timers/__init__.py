"""The timer trigger: when it fires, who fires it, and what is kept of it."""
