"""The HTTP endpoints: the functions' routes, the host's own endpoints, and Event Grid's webhook."""
