"""From a request to a run's first record. Every request makes one run, however often the request is repeated."""
