"""The demo: a real data set goes in, and everything that the system promises is followed and checked."""
