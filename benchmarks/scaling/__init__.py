"""The parts of `bench scale`, one question a module."""
