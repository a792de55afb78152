"""Azure on one machine: storage, Event Grid, a Functions host and Azure ML. This package does not depend on the
projects that use it."""
