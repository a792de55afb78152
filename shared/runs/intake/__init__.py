"""From a request to a run's first record. Every requester gets one run per request, however often it is repeated."""
