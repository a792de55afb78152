"""The storage account: blobs, queues and tables over HTTP."""
