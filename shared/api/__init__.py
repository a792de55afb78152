"""The HTTP API: requests, answers, and their description."""
