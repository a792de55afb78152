"""Meet a deadline at the lowest cost: when to hold low-priority nodes, dedicated nodes, or no nodes."""
