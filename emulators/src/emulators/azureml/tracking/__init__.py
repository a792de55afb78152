"""MLflow at the workspace's advertised address."""
