"""Jobs: from a request to the exact job for Azure ML."""
