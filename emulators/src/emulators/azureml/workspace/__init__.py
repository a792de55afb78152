"""The workspace's records and their changes: jobs, clusters, assets, registries."""
