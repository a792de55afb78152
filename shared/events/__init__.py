"""Events: incoming events, and Trainyard's own."""
