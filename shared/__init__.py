"""The domain: drops, runs and clusters, and the rules for each of them."""
