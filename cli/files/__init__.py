"""What lies on this machine and is sent or written: folders, job files, drops, clusters files."""
