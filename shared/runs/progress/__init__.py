"""From a recorded run to the end of its jobs: submit, follow, reconcile."""
