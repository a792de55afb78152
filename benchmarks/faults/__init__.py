"""Faults that are put into real jobs, and the causes that a diagnosis should name: the parts of `bench diagnose`."""
