"""REST bodies: requests, read and checked, and answers. No I/O."""
