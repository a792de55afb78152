"""The parts of `bench scale`, one module for each question."""
