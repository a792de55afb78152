"""All messages of the system: their kinds, the handling of poison messages, and replay."""
