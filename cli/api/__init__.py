"""The API over HTTP, and what takes several calls of it: lists, names, following a run, an archive."""
