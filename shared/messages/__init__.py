"""The messages of the system: kinds, poison messages, and replay."""
