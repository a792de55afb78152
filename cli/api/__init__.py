"""The client of the HTTP API, and functions that need several calls: lists, names, following a run, fetching an
archive."""
