"""Start times of the emulators alone and of the whole local cloud, on a new folder and again on the same folder.

Cold means a folder without state or certificates; the machine's file cache is unchanged. `cpu` is the CPU time of all
processes until ready, which depends less on other load than the wall time.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks._options import options

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {"emulators": ["-m", "emulators", "up"], "whole cloud": ["-m", "local", "up"]}
READY = ("The emulators are up", "The local cloud is up")


def main(argv: list[str]) -> int:
    parser = options(__doc__, "each once")
    parser.add_argument("--times", type=int, default=3, help="of each; the median counts (default: %(default)s)")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.times = 1
    found = {}
    for name, command in COMMANDS.items():
        cold, warm = zip(*(both(command) for _ in range(arguments.times)), strict=True)
        found[name] = {"cold": median(cold), "warm": median(warm)}
    if arguments.json:
        print(json.dumps(found))
        return 0
    print(f"{'':12} {'cold':>8} {'cpu':>6} {'warm':>8} {'cpu':>6}   seconds, median of {arguments.times}")
    for name, times in found.items():
        print(f"{name:12} " + " ".join(f"{times[k][0]:8.2f} {times[k][1]:6.2f}" for k in ("cold", "warm")))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


def median(measured: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    seconds, cpu = zip(*measured, strict=True)
    return statistics.median(seconds), statistics.median(cpu)


def both(command: list[str]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Start on a new folder, and again on the resulting state. Returns the seconds, and the CPU seconds of all
    processes."""
    with tempfile.TemporaryDirectory(prefix="bench-up-") as home:
        return ready(command, home), ready(command, home)


def ready(command: list[str], home: str) -> tuple[float, float]:
    begun = time.monotonic()
    with running([sys.executable, *command, "--home", home]) as child:
        assert child.stdout
        for line in child.stdout:
            if line.startswith(READY):
                return time.monotonic() - begun, cpu_of(child.pid)
    raise SystemExit(f"{' '.join(command)} did not become ready")


def cpu_of(pid: int) -> float:
    total = 0.0
    for part in (leader := psutil.Process(pid), *leader.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            used = part.cpu_times()
            total += used.user + used.system
    return total


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            yield child
        finally:
            child.terminate()
            child.communicate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
