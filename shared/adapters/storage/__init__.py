"""Blobs and queues of the one storage account."""
