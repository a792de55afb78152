"""The command line: thin commands over Trainyard's HTTP API.

Imports inside the package are relative, because the package is called `cli` in the repository and `trainyard_cli` once
installed.
"""
