"""The real members of a run over a table in memory, in virtual time, with every fault between any two requests."""
