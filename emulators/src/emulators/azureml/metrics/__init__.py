"""Azure Monitor's metrics of the workspace: what the nodes of each job use, and how many nodes each cluster has."""
