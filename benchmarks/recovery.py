"""kill -9, and back at work: our teams and torchft in turn, with the same model, the same pace and the same kill.

    python -m benchmarks.recovery [--nodes 2,4,8] [--rounds 3] [--torchft PYTHON] [--timeline FILE.png] [--json]

known    seconds from the kill until a survivor's agent knows (its bell, or the table)
again    seconds from the kill until the last survivor made a step in a team of those that are left
torchft  the same, with a Python that has torchft: its lighthouse and managers with the settings of its own example;
         inf where a survivor failed, too
told     seconds for which nobody made a step around a SIGTERM to one node's agent

The victims are the first of the team and the last to come, in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emulators.process import wait_for
from emulators.storage import azurite

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "peers" / "recovery.py"
START_SECONDS, KILL_SECONDS = 180, 90

Line = dict[str, Any]


def lines(file: Path) -> list[Line]:
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


class Crowd:
    """Processes at work on one file of steps."""

    def __init__(self, folder: Path, argv: list[str], env: dict[str, str], count: int, numbered: bool = False) -> None:
        self.file, self.events = folder / "steps", folder / "events"
        self._log = (folder / "log").open("wb")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "ELASTIC_EVENTS": str(self.events), **env}
        env["PYTHONPATH"] = str(ROOT / "trainers")
        self.processes = [
            subprocess.Popen(
                [*argv, *([str(number)] if numbered else [])],
                cwd=ROOT / "trainers",
                env=env,
                stdout=self._log,
                stderr=subprocess.STDOUT,
            )
            for number in range(count)
        ]

    def working(self, world: int, after: float = 0.0) -> set[int]:
        return {line["process"] for line in lines(self.file) if line["world"] == world and line["time"] > after}

    def wait(self, world: int, after: float = 0.0, seconds: float = START_SECONDS) -> None:
        def there() -> bool:
            if sum(process.poll() is None for process in self.processes) < world:
                raise RuntimeError(f"too few are left: {Path(self._log.name).read_text()[-3000:]}")
            return len(self.working(world, after)) >= world

        wait_for(there, seconds, f"{world} at work", every=0.1)

    def again(self, world: int, began: float) -> float:
        """Seconds until each of so many processes has made its first step together."""
        first: dict[int, float] = {}
        for line in lines(self.file):
            if line["world"] == world and line["time"] > began:
                first.setdefault(line["process"], line["time"])
        return max(first.values()) - began

    def end(self) -> None:
        self.file.with_suffix(".end").touch()
        for process in self.processes:
            process.kill()
            process.wait()
        self._log.close()


def ours(folder: Path, url: str, count: int, least: int = 1) -> Crowd:
    env = {"PET_RDZV_ENDPOINT": url, "PET_RDZV_ID": uuid.uuid4().hex, "PET_NNODES": f"{least}:{count}"}
    env |= {"PET_LOCAL_ADDR": "127.0.0.1"}
    return Crowd(
        folder, [sys.executable, "-m", "elastic.launch", "--in-place", str(SCRIPT), str(folder / "steps")], env, count
    )


@contextmanager
def lighthouse(python: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [str(Path(python).parent / "torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "1"]
    argv += ["--quorum_tick_ms", "100", "--join_timeout_ms", "10000"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def killed(crowd: Crowd, count: int, first: bool) -> dict[str, float]:
    """Kill one of the crowd and wait for the others."""
    crowd.wait(count)
    time.sleep(1)
    events = lines(crowd.events)
    ranks = {e["process"]: e["rank"] for e in events if e["what"] == "node joined"}
    order = sorted(crowd.processes, key=lambda process: ranks.get(process.pid, 0)) if ranks else crowd.processes
    victim = order[0] if first else crowd.processes[-1]
    began = time.time()
    victim.send_signal(signal.SIGKILL)
    crowd.wait(count - 1, began, KILL_SECONDS)
    found = {"again": crowd.again(count - 1, began)}
    knew = [e["time"] for e in lines(crowd.events) if e["what"] == "bell refused" and e["time"] > began]
    if knew:
        found["known"] = min(knew) - began
    return found


def told(crowd: Crowd, count: int) -> float:
    """SIGTERM to the first: the longest pause between two steps of the others around it."""
    crowd.wait(count)
    began = time.time()
    crowd.processes[0].terminate()
    crowd.wait(count - 1, began, KILL_SECONDS)
    end = began + crowd.again(count - 1, began)
    last: float = max(line["time"] for line in lines(crowd.file) if line["world"] == count and line["time"] < end)
    return float(end - last)


def measure(count: int, rounds: int, url: str, torchft: str) -> dict[str, Any]:
    results: dict[str, list[float]] = {}
    for turn in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            crowd = ours(Path(folder), url, count)
            try:
                for name, value in killed(crowd, count, first=turn % 2 == 0).items():
                    results.setdefault(name, []).append(value)
            finally:
                crowd.end()
        if torchft:
            with tempfile.TemporaryDirectory() as folder, lighthouse(torchft) as address:
                argv = [torchft, str(SCRIPT), str(Path(folder) / "steps"), "--torchft"]
                crowd = Crowd(Path(folder), argv, {"LIGHTHOUSE": address}, count, numbered=True)
                try:
                    results.setdefault("torchft", []).append(killed(crowd, count, first=turn % 2 == 0)["again"])
                except RuntimeError:  # a survivor of the kill failed, too
                    results.setdefault("torchft", []).append(math.inf)
                finally:
                    crowd.end()
    with tempfile.TemporaryDirectory() as folder:
        crowd = ours(Path(folder), url, count)
        try:
            results["told"] = [told(crowd, count)]
        finally:
            crowd.end()
    row: dict[str, Any] = {"nodes": count, "rounds": rounds}
    for name, values in results.items():
        row |= {name: statistics.median(values), f"{name} worst": max(values)}
    return row


def timeline(url: str, file: Path) -> None:
    """Draw who knew what when around one kill of the first of four."""
    import matplotlib.pyplot as plt

    with tempfile.TemporaryDirectory() as folder:
        crowd = ours(Path(folder), url, 4)
        try:
            crowd.wait(4)
            joined = {e["process"]: e["rank"] for e in lines(crowd.events) if e["what"] == "node joined"}
            victim = next(process for process in crowd.processes if joined.get(process.pid) == 0)
            time.sleep(2)
            began = time.time()
            victim.kill()
            crowd.wait(3, began, KILL_SECONDS)
            time.sleep(0.5)
            events, steps = lines(crowd.events), lines(crowd.file)
        finally:
            crowd.end()
    names = {process.pid: f"agent {number}" for number, process in enumerate(crowd.processes)}
    workers = sorted({line["process"] for line in steps})
    names |= {pid: f"worker {number}" for number, pid in enumerate(workers)}
    places = {pid: place for place, pid in enumerate(sorted(names, key=names.__getitem__))}
    figure, axes = plt.subplots(figsize=(11, 5))
    shown = [e for e in events if e["process"] in names and began - 0.2 < e["time"] < began + 3]
    for event in shown:
        at = event["time"] - began
        axes.plot(at, places[event["process"]], "o", color="tab:red")
        axes.annotate(
            event["what"], (at, places[event["process"]]), (2, 5), textcoords="offset points", fontsize=6, rotation=25
        )
    for line in steps:
        if -0.4 < (at := line["time"] - began) < 3:
            axes.plot(at, places[line["process"]], "|", color="tab:green", markersize=9)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(list(places.values()), [names[pid] for pid in places])
    axes.set_xlabel("seconds after kill -9 of the first of four (green: a step; red: what a process learned or did)")
    last = max(e["time"] for e in shown) - began
    axes.set_xlim(-0.4, min(3.0, last + 0.6))
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    for event in sorted(shown, key=lambda e: e["time"]):
        print(f"{event['time'] - began:7.3f} s  {names[event['process']]:9} {event['what']}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="2,4,8", help="numbers of nodes (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="kills for each number (default %(default)s)")
    parser.add_argument("--torchft", default="", metavar="PYTHON", help="an interpreter that has torchft 0.2")
    parser.add_argument("--timeline", type=Path, help="draw one kill's timeline, and measure nothing")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, azurite.start(Path(folder), key=azurite.KEY) as account:
        if args.timeline:
            timeline(account.table_url, args.timeline)
            return 0
        for count in map(int, args.nodes.split(",")):
            row = measure(count, args.rounds, account.table_url, args.torchft)
            shown = "   ".join(f"{name} {value:.3g}" for name, value in row.items())
            print(json.dumps(row) if args.json else shown, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
