"""Events: those that arrive, and our own."""
