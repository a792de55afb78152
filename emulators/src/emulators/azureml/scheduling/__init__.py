"""Which job runs when and on which nodes."""
