"""What blobs, queues and tables share: HTTP, who may do what, the database."""
