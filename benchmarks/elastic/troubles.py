"""The effect of failures on a training under each launcher: goes on, restarts, hangs or fails, and for how long.

Three nodes on this machine run in four ways: our agents whose workers keep running, torchrun with our table, torchrun
with c10d, and torchft if a Python with torchft is given. All except torchft, which has no checkpoints, run the same
trainer. The meeting point is a separate process: the table, c10d's store, or torchft's lighthouse.

    goes on    a process that worked before works afterwards
    restarts   only new processes work afterwards
    hangs      the nodes live, but make no common step for LIMIT seconds
    fails      nodes that the benchmark did not touch have ended
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.elastic.crowd import PEERS, START_SECONDS, Crowd, free_port, in_place, installed, lines
from benchmarks.elastic.outages import stopped
from emulators.testing.azurite import Azurite

NODES = 3
LIMIT = 120.0
# Seconds of undisturbed steps before each trouble, and of steps after it that prove its end.
STEADY = 3.0
TRAINER = PEERS / "elastic_trainer.py"
STORE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", int(sys.argv[1]), None, True, wait_for_workers=False)
time.sleep(3600)
"""

Row = dict[str, Any]


class Point:
    """A process at which the nodes meet."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart_if_dead(self) -> None:
        if self._process.poll() is not None:
            self._process = self._start()


@dataclass
class Site:
    """A working crowd, and its meeting point."""

    crowd: Crowd
    point: Point | Azurite


def _torchrun(folder: Path, options: Sequence[str], env: dict[str, str]) -> Crowd:
    argv = [sys.executable, "-m", "torch.distributed.run", "--nnodes", f"1:{NODES}", "--rdzv-id", uuid.uuid4().hex]
    argv += [*options, "--max-restarts", "1000", "--local-addr", "127.0.0.1", str(TRAINER), str(folder / "steps")]
    return Crowd(folder, argv, env, NODES)


@contextmanager
def _at_work(crowd: Crowd, point: Point | Azurite) -> Iterator[Site]:
    try:
        with crowd:
            yield Site(crowd, point)
    finally:
        if isinstance(point, Point):
            point.stop()


Start = Callable[[Path], AbstractContextManager[Site]]


def ours(folder: Path, account: Azurite) -> AbstractContextManager[Site]:
    return _at_work(in_place(folder, account.table_url, NODES, TRAINER), account)


def torchrun(folder: Path, account: Azurite) -> AbstractContextManager[Site]:
    """Start PyTorch's own command, with our table."""
    options = ["--rdzv-backend", "azure-table", "--rdzv-endpoint", account.table_url]
    return _at_work(_torchrun(folder, options, installed(folder)), account)


def c10d(folder: Path) -> AbstractContextManager[Site]:
    port = free_port()
    point = Point([sys.executable, "-c", STORE, str(port)])
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", "is_host=false"]
    return _at_work(_torchrun(folder, options, {}), point)


def torchft(folder: Path, python: str) -> AbstractContextManager[Site]:
    port = free_port()
    argv = [str(Path(python).parent / "torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "1"]
    point = Point([*argv, "--quorum_tick_ms", "100", "--join_timeout_ms", "10000"])
    script = [python, str(PEERS / "elastic_steps.py"), str(folder / "steps"), "--torchft", "{number}"]
    return _at_work(Crowd(folder, script, {"LIGHTHOUSE": f"http://127.0.0.1:{port}"}, NODES), point)


@contextmanager
def first_killed(site: Site, _seconds: float) -> Iterator[int]:
    site.crowd.by_rank()[0].kill()
    yield NODES - 1


@contextmanager
def last_killed(site: Site, _seconds: float) -> Iterator[int]:
    site.crowd.by_rank()[-1].kill()
    yield NODES - 1


@contextmanager
def told(site: Site, _seconds: float) -> Iterator[int]:
    process = site.crowd.by_rank()[-1]
    process.terminate()
    yield NODES - 1
    process.wait(LIMIT)


@contextmanager
def all_killed(site: Site, _seconds: float) -> Iterator[int]:
    for process in site.crowd.alive():
        process.kill()
        process.wait()
    for _ in range(NODES):
        site.crowd.add()
    yield NODES


@contextmanager
def asleep(site: Site, seconds: float) -> Iterator[int]:
    with stopped(site.crowd.by_rank()[-1]) as began:
        yield NODES - 1
        time.sleep(max(0.0, began + seconds - time.time()))


@contextmanager
def point_silent(site: Site, seconds: float) -> Iterator[int]:
    os.kill(site.point.pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
        yield NODES
    finally:
        os.kill(site.point.pid, signal.SIGCONT)


@contextmanager
def point_gone(site: Site, seconds: float) -> Iterator[int]:
    site.point.stop()
    try:
        time.sleep(seconds)
        yield NODES
    finally:
        site.point.restart_if_dead()


Trouble = Callable[[Site, float], AbstractContextManager[int]]
# The trouble, and its seconds; each trouble yields the number of nodes that should be at work meanwhile.
ANEW = "all are killed"
TROUBLES: dict[str, tuple[Trouble, float]] = {
    "the first is killed": (first_killed, 0),
    "the last is killed": (last_killed, 0),
    "one gets SIGTERM": (told, 0),
    "one is stopped for 60 s": (asleep, 60),
    "the meeting point is silent for 60 s": (point_silent, 60),
    "the meeting point is gone for 60 s": (point_gone, 60),
    ANEW: (all_killed, 0),
}
LONGEST = {"one is stopped for 300 s": (asleep, 300.0)}


def one(site: Site, name: str, trouble: Trouble, seconds: float) -> Row:
    """Cause this trouble. Return the outcome of the training during the trouble, and after all nodes could be back."""
    crowd = site.crowd
    crowd.wait(NODES, time.time())
    time.sleep(STEADY)
    began = time.time()
    with trouble(site, seconds) as count:
        limit = START_SECONDS if name == ANEW else LIMIT
        row: Row = {"trouble": name, **_became(crowd, count, began, max(began, time.time() - STEADY), limit)}
    over = time.time()
    crowd.processes = crowd.alive()
    for _ in range(NODES - len(crowd.processes)):
        crowd.add()
    after = _became(crowd, NODES, over, over, LIMIT)
    return {**row, "afterwards": after["outcome"], "seconds until all": after["seconds"]}


def _became(crowd: Crowd, count: int, began: float, after: float, limit: float) -> Row:
    """Return the outcome, the longest time without a step since the trouble began, and the number of repeated
    steps."""
    outcome = ""
    try:
        crowd.wait(count, after, limit)
        time.sleep(STEADY)
    except RuntimeError:
        outcome = "fails"
    except TimeoutError:
        outcome = "hangs"
    steps, end = lines(crowd.file), time.time()
    before = {line["process"] for line in steps if began - STEADY < line["time"] < began}
    at_end = {line["process"] for line in steps if line["time"] > end - STEADY}
    times = [began, *sorted(line["time"] for line in steps if began < line["time"]), end]
    first = {line["step"]: line["time"] for line in reversed(steps)}
    again = {line["step"] for line in steps if line["time"] > began > first[line["step"]]}
    pauses = [later - earlier for earlier, later in pairwise(times)]
    became = outcome or ("goes on" if before & at_end else "restarts")
    return {"outcome": became, "seconds": max(pauses), "steps lost": len(again)}


def measure(account: Azurite, python: str, quick: bool) -> Iterator[Row]:
    """Yield a row for each trouble and launcher. A crowd that did not come together again is replaced."""
    starts: dict[str, Start] = {
        "in place": lambda folder: ours(folder, account),
        "torchrun": lambda folder: torchrun(folder, account),
        "c10d": c10d,
    }
    if python:
        starts["torchft"] = lambda folder: torchft(folder, python)
    for launcher, start in starts.items():
        for row in _rows(start, TROUBLES if quick else {**TROUBLES, **LONGEST}):
            account.restart_if_dead()
            yield {"launcher": launcher, **row}


def _rows(start: Start, troubles: dict[str, Any]) -> Iterator[Row]:
    left = [*troubles]
    while left:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
            site = stack.enter_context(start(Path(folder)))
            site.crowd.wait(NODES)
            whole = True
            while left and whole:
                name = left.pop(0)
                row = one(site, name, *troubles[name])
                whole = row["afterwards"] in ("goes on", "restarts")
                yield row
