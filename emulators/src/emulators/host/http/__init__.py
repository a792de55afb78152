"""What comes over HTTP: functions' routes, the host's own endpoints and Event Grid's webhook."""
