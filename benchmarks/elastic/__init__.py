"""The cost of membership changes in an elastic run: the parts of `bench rendezvous`."""
