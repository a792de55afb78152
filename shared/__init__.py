"""The system itself: what a drop, a run and a cluster are, and what happens to them."""
