"""Azure ML behind the ports: jobs, clusters, code, environments, metrics."""
