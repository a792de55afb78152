"""Blobs and queues of the storage account."""
