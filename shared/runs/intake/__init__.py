"""From a request to a run's first record: made once, whoever asks and however often."""
