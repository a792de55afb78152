"""Done by a date at the least cost: when to hold low-priority nodes, when dedicated ones, and when none."""
