"""Says which files came with it."""

import pathlib

print("FILES", sorted(p.as_posix() for p in pathlib.Path().rglob("*") if p.is_file() and p.suffix != ".pyc"))
