"""Azure on one machine: storage, Event Grid, a Functions host and Azure ML. This package does not depend on its
users."""
