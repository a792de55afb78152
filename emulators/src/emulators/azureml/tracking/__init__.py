"""MLflow at the address that the workspace advertises."""
