"""The kernel that every noun uses: errors, settings, names, blobs and queues."""
