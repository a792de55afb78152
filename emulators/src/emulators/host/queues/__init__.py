"""The queue trigger, the queue output, and the client that both use."""
