"""Azure on one machine: storage, Event Grid, a Functions host and Azure ML. It knows nothing of who uses it."""
