"""Keys that sign models: a file on a laptop, Key Vault in Azure."""
