"""Says what a job was given, and leaves results: the one program of all jobs of this folder. Standard library only."""

import json
import os
import pathlib
import sys

for word in sys.argv[1:]:
    name, _, value = word.partition("=")
    path = pathlib.Path(value)
    if name == "in":
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        print("IN", {p.name: p.read_text().strip() for p in files})
    elif name == "out":
        target = path if path.suffix else path / "result.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
    elif name == "env":
        print("ENV", value, os.environ.get(value))
    elif name == "module":
        print("MODULE", value, __import__(value).__name__)
    else:
        print("SAID", json.dumps(word))
print("FILES", sorted(p.as_posix() for p in pathlib.Path().rglob("*") if p.is_file() and p.suffix != ".pyc"))
