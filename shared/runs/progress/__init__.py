"""From a recorded run to the end of the run's jobs: submit, follow, reconcile."""
