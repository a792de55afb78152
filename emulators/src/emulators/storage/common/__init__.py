"""Parts that blobs, queues and tables share: HTTP, authorization, the database."""
