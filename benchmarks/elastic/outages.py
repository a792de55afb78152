"""A minute without the table, and stopped nodes: how the training fares meanwhile.

The table fails twice: as a server that refuses connections, and as a server that accepts connections but never answers.
The last and the first node of the team are stopped in turn until the others continue; then one node is stopped for a
minute.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.elastic.crowd import Crowd, in_place, lines
from emulators.testing.azurite import Azurite

# In a team that has just met, heartbeats and reads coincide. After this time they no longer do, as in a usual run.
SETTLE_SECONDS = 12
KNOWN = "node sees a change"


def measure(account: Azurite, nodes: int, seconds: float, stops: int) -> list[dict[str, Any]]:
    """Return a row for each of the four outages, on one set of processes."""
    with tempfile.TemporaryDirectory() as folder, in_place(Path(folder), account.table_url, nodes) as crowd:
        crowd.wait(nodes)
        usual = _pace(crowd, nodes, 5)
        rows = [
            _table_away(crowd, nodes, seconds, usual, "refuses", lambda: _refusing(account)),
            _table_away(crowd, nodes, seconds, usual, "is silent", lambda: _silent(account)),
        ]
        return [*rows, _nodesstopped(crowd, nodes, stops), _node_sleeps(crowd, nodes, seconds)]


@contextmanager
def _refusing(account: Azurite) -> Iterator[None]:
    account.stop()
    try:
        yield
    finally:
        account.restart_if_dead()


@contextmanager
def _silent(account: Azurite) -> Iterator[None]:
    """Stop the server process: the kernel still accepts connections, but nothing answers."""
    os.kill(account.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(account.pid, signal.SIGCONT)


def _pace(crowd: Crowd, nodes: int, seconds: float) -> float:
    """Return the steps a second that all processes make together."""
    began = time.time()
    time.sleep(seconds)
    steps = {line["step"] for line in lines(crowd.file) if line["world"] == nodes and line["time"] > began}
    return len(steps) / seconds


def _table_away(crowd: Crowd, nodes: int, seconds: float, usual: float, how: str, away: Callable[[], Any]) -> Any:
    with away():
        meanwhile = _pace(crowd, nodes, seconds)
    back = time.time()
    crowd.wait(nodes, back)
    time.sleep(15)  # so that heartbeats and reads notice the outage
    worlds = {line["world"] for line in lines(crowd.file) if line["time"] > back}
    row = {"what": f"the table {how} for {seconds:.0f} s", "steps a second, before": usual, "meanwhile": meanwhile}
    return {**row, "agents that live": len(crowd.alive()), "all in one team after": worlds == {nodes}}


def _family(process: subprocess.Popen[bytes]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [process.pid, *map(int, children)]


@contextmanager
def stopped(victim: subprocess.Popen[bytes]) -> Iterator[float]:
    """Stop all processes of a node, and yield the time of the stop."""
    pids, began = _family(victim), time.time()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield began
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _nodesstopped(crowd: Crowd, nodes: int, stops: int) -> Any:
    known, again = [], []
    dice = random.Random(1)
    for turn in range(stops):
        crowd.wait(nodes, time.time())
        time.sleep(SETTLE_SECONDS + dice.uniform(0, 9))  # nodes at work read the table every 9 s
        with stopped(crowd.by_rank()[-1 if turn % 2 == 0 else 0]) as began:
            crowd.wait(nodes - 1, began)
            again.append(crowd.again(nodes - 1, began))
            events = lines(crowd.events)
            known.append(min(e["time"] - began for e in events if e["time"] > began and e["what"] == KNOWN))
    row = {"what": f"a node is stopped, {stops} times", "known": statistics.median(known), "known worst": max(known)}
    return {**row, "training again": statistics.median(again), "again worst": max(again)}


def _node_sleeps(crowd: Crowd, nodes: int, seconds: float) -> Any:
    crowd.wait(nodes, time.time())
    with stopped(crowd.by_rank()[-1]) as began:
        crowd.wait(nodes - 1, began)
        without = crowd.again(nodes - 1, began)
        time.sleep(max(0.0, began + seconds - time.time()))
    woken = time.time()
    crowd.wait(nodes, woken)
    row = {"what": f"a node is stopped for {seconds:.0f} s", "others go on after": without}
    return {**row, "back in the team after": crowd.again(nodes, woken), "agents that live": len(crowd.alive())}
