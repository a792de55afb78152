"""Jobs: from a request to the exact job that Azure ML receives."""
