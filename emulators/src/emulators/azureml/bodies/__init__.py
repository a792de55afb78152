"""REST bodies: parsed and checked requests, and answers. No I/O."""
