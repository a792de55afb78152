"""REST bodies: those of requests, read and checked, and those of answers. No I/O."""
