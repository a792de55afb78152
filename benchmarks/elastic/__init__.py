"""What a change of members costs an elastic run: the parts of `bench rendezvous`."""
