"""Keys for signing models: a file on a laptop, Key Vault in Azure."""
