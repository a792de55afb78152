"""What every noun needs: errors, settings, names, blobs and queues."""
