"""The domain: what a drop, a run and a cluster are, and what happens to each of them."""
