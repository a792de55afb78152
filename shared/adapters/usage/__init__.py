"""Azure Monitor behind the port of usage."""
