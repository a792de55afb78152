"""The demo: it drops a real data set, follows the run, and checks everything that the system promises."""
