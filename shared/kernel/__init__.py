"""The kernel for every noun: errors, settings, names, blobs and queues."""
