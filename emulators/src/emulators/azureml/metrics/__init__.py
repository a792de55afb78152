"""The workspace's Azure Monitor metrics: what the nodes of each job use, and how many nodes each cluster has."""
