"""What a run left behind, and its archive."""
