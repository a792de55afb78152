"""What the workspace knows, keeps and changes: jobs, clusters, assets, registries."""
