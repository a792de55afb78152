"""The demo: drops a real data set, follows the run, and checks every promise of the system."""
