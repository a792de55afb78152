"""The storage account behind the datastores, and inputs from the web."""
