"""A job for the tests, without torch. It prints its environment, waits or fails on request, and writes outputs."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--models")
parser.add_argument("--metrics")
parser.add_argument("--gate", help="a file to wait for")
parser.add_argument("--fail", type=int, default=0, help="exit status")
parser.add_argument("--fail-rank", type=int, default=0)
parser.add_argument("--stubborn", action="store_true", help="ignore SIGTERM")
parser.add_argument("--child", help="start a process that outlives this one, and write its id to this file")
parser.add_argument("--lines", type=int, default=0)
arguments = parser.parse_args()
rank = os.environ.get("RANK", "0")


def on_sigterm(number: int, frame: object) -> None:
    print("got SIGTERM", flush=True)
    if not arguments.stubborn:
        sys.exit(143)


signal.signal(signal.SIGTERM, on_sigterm)
print(
    "ENV",
    json.dumps({**os.environ, "cwd": str(pathlib.Path.cwd()), "executable": sys.executable, "pid": str(os.getpid())}),
)
if arguments.child:
    child = subprocess.Popen(["sleep", "600"])
    pathlib.Path(arguments.child).write_text(str(child.pid))
if arguments.data:
    data = pathlib.Path(arguments.data)
    files = [data] if data.is_file() else sorted(p for p in data.rglob("*") if p.is_file())
    print("DATA", json.dumps({p.name: p.stat().st_size for p in files}))
if arguments.models:
    models = pathlib.Path(arguments.models)
    print("FOUND", json.dumps(sorted(p.name for p in models.iterdir())))
    (models / f"rank{rank}.bin").write_bytes(rank.encode() * 1000)
if arguments.metrics and rank == "0":
    pathlib.Path(arguments.metrics, "metrics.jsonl").write_text('{"step": 1}\n')
pathlib.Path("outputs").mkdir(exist_ok=True)
pathlib.Path("outputs", f"note-{rank}.txt").write_text(f"rank {rank}")
for number in range(arguments.lines):
    print(f"line {number} of rank {rank} é")
if arguments.gate:
    print("WAITING", flush=True)
    while not pathlib.Path(arguments.gate).exists():
        time.sleep(0.02)
if arguments.fail and rank == str(arguments.fail_rank):
    print("ValueError: the loss is not a number", file=sys.stderr)
    sys.exit(arguments.fail)
print("DONE")
