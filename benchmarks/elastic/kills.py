"""Recovery after kill -9: our teams and torchft in turn, with the same model, the same pace and the same kills.

A victim is replaced. The next victim is killed once all nodes work together again: in turn the first of the team and
the newest node. So one crowd gives many kills.
"""

from __future__ import annotations

import math
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.elastic.crowd import PEERS, Crowd, free_port, in_place, lines

SCRIPT = PEERS / "elastic_steps.py"
KILL_SECONDS = 90
SETTLE_SECONDS = 1.0  # seconds of undisturbed steps before each kill


@contextmanager
def torchft(folder: Path, python: str, count: int) -> Iterator[Crowd]:
    """Start torchft's lighthouse and managers, with the settings of torchft's own example."""
    port = free_port()
    argv = [str(Path(python).parent / "torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "1"]
    argv += ["--quorum_tick_ms", "100", "--join_timeout_ms", "10000"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script = [python, str(SCRIPT), str(folder / "steps"), "--torchft", "{number}"]
    try:
        with Crowd(folder, script, {"LIGHTHOUSE": f"http://127.0.0.1:{port}"}, count) as crowd:
            yield crowd
    finally:
        process.kill()
        process.wait()


def killed(crowd: Crowd, count: int, first: bool) -> dict[str, float]:
    """Kill one process of the crowd, wait for the others, and start a replacement."""
    crowd.wait(count, time.time())
    time.sleep(SETTLE_SECONDS)
    victim = crowd.by_rank()[0] if first else crowd.alive()[-1]
    began = time.time()
    victim.send_signal(signal.SIGKILL)
    crowd.wait(count - 1, began, KILL_SECONDS)
    found = {"again": crowd.again(count - 1, began)}
    knew = [e["time"] for e in lines(crowd.events) if e["what"] == "bell refused" and e["time"] > began]
    if knew:
        found["known"] = min(knew) - began
    crowd.add()
    return found


def told(crowd: Crowd, count: int) -> float:
    """Send SIGTERM to the first process. Return the longest pause between two steps of the others."""
    crowd.wait(count, time.time())
    began = time.time()
    crowd.by_rank()[0].terminate()
    crowd.wait(count - 1, began, KILL_SECONDS)
    end = began + crowd.again(count - 1, began)
    last: float = max(line["time"] for line in lines(crowd.file) if line["world"] == count and line["time"] < end)
    return float(end - last)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile as the nearest measured value; with fewer than 20 values, the worst."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def measure(count: int, kills: int, url: str, python: str) -> dict[str, Any]:
    """Kill processes of `count` nodes `kills` times; do the same with torchft if a Python with torchft is given."""
    again: list[float] = []
    known: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder, in_place(Path(folder), url, count) as crowd:
        for turn in range(kills):
            found = killed(crowd, count, first=turn % 2 == 0)
            again.append(found["again"])
            known += [found["known"]] if "known" in found else []
        announced = told(crowd, count)
    row: dict[str, Any] = {"nodes": count, "kills": kills, "told": announced}
    row |= {"again": statistics.median(again), "again p95": p95(again), "again worst": max(again)}
    if known:  # missing if the others noticed first by reading the table
        row |= {"known": statistics.median(known), "known p95": p95(known), "known at": len(known)}
    failed = 0
    while python and len(theirs) < kills and failed < 3:
        with tempfile.TemporaryDirectory() as folder, torchft(Path(folder), python, count) as crowd:
            try:
                while len(theirs) < kills:
                    theirs.append(killed(crowd, count, first=len(theirs) % 2 == 0)["again"])
            except (RuntimeError, TimeoutError):  # a survivor of the kill failed too
                failed += 1
    if theirs:
        row |= {"torchft": statistics.median(theirs), "torchft p95": p95(theirs), "torchft kills": len(theirs)}
        row["torchft failed"] = failed
    return row


def timeline(url: str, file: Path) -> None:
    """Draw and print what each process learned and did around one kill of the first of four."""
    with tempfile.TemporaryDirectory() as folder, in_place(Path(folder), url, 4) as crowd:
        crowd.wait(4)
        time.sleep(2)
        victim = crowd.by_rank()[0]
        began = time.time()
        victim.kill()
        crowd.wait(3, began, KILL_SECONDS)
        time.sleep(0.5)
        events, steps = lines(crowd.events), lines(crowd.file)
        names = {process.pid: f"agent {number}" for number, process in enumerate(crowd.processes)}
    names |= {pid: f"worker {number}" for number, pid in enumerate(sorted({line["process"] for line in steps}))}
    shown = [e for e in events if e["process"] in names and began - 0.2 < e["time"] < began + 3]
    _draw(file, names, [{**e, "at": e["time"] - began} for e in shown], [{**s, "at": s["time"] - began} for s in steps])
    for event in sorted(shown, key=lambda e: e["time"]):
        print(f"{event['time'] - began:7.3f} s  {names[event['process']]:9} {event['what']}")


def _draw(file: Path, names: dict[int, str], shown: list[dict[str, Any]], steps: list[dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    places = {pid: place for place, pid in enumerate(sorted(names, key=names.__getitem__))}
    figure, axes = plt.subplots(figsize=(11, 5))
    for event in shown:
        at = (event["at"], places[event["process"]])
        axes.plot(*at, "o", color="tab:red")
        axes.annotate(event["what"], at, (0, 6), textcoords="offset points", fontsize=6, rotation=60)
    for line in steps:
        if -0.4 < line["at"] < 3:
            axes.plot(line["at"], places[line["process"]], "|", color="tab:green", markersize=9)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(list(places.values()), [names[pid] for pid in places])
    axes.set_xlabel("seconds after kill -9 of the first of four (green: a step; red: what a process learned or did)")
    last = min(3.0, max(e["at"] for e in shown))
    axes.set_xlim(-last / 2, last * 1.7)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
