"""Goodput: the share of wall time that ends in kept steps, while nodes leave and join according to a trace.

The same trainer, victims and trace run in turn under our launcher, whose workers keep running, and under plain torchrun
with c10d, which restarts the workers from the newest checkpoint. A node leaves by kill -9 of its agent, and joins as a
new process. This benchmark hosts c10d's store outside the nodes, because otherwise the first loss could end it.

A step's time counts if the step was not repeated later. All time between two steps is lost: rendezvous, process start,
and reading and writing checkpoints. The window runs from the first step of all nodes to the end of the trace.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore

from benchmarks.elastic.crowd import PEERS, Crowd, free_port, in_place, lines
from benchmarks.elastic.preemptions import Moment, Span, covered, kept_steps, node_seconds

SCRIPT = PEERS / "elastic_trainer.py"
LOOK_SECONDS = 0.2


def with_c10d(folder: Path, port: int, count: int, most: int) -> Crowd:
    """Start `count` agents of torchrun itself, with torchrun's defaults."""
    argv = [sys.executable, "-m", "torch.distributed.run", "--nnodes", f"1:{most}", "--rdzv-backend", "c10d"]
    argv += ["--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", "is_host=false", "--rdzv-id", uuid.uuid4().hex]
    argv += ["--max-restarts", "1000", "--local-addr", "127.0.0.1", str(SCRIPT), str(folder / "steps")]
    return Crowd(folder, argv, {}, count)


def replay(crowd: Crowd, moments: Sequence[Moment], speed: float, seed: int = 1) -> Span:
    """Remove and add nodes as the trace says, and return the window. An agent that exits by itself is restarted."""
    dice = random.Random(seed)
    crowd.wait(moments[0].nodes)
    began = time.time()
    for moment, after in pairwise(moments):
        alive = crowd.alive()
        for victim in dice.sample(alive, max(0, len(alive) - moment.nodes)):
            victim.kill()
        while time.time() < began + after.time / speed:
            if len(crowd.alive()) < moment.nodes:
                crowd.add()
            time.sleep(LOOK_SECONDS)
    return began, time.time()


def judged(steps: Sequence[dict[str, Any]], moments: Sequence[Moment], speed: float, window: Span) -> dict[str, float]:
    """Return the figures of a replay, computed from the steps that all processes logged."""
    kept = kept_steps(steps)
    spans = [(line["began"], line["time"]) for line in kept.values()]
    seconds, useful = window[1] - window[0], covered(spans, window)
    again = {line["step"] for line in steps if line["time"] <= kept[line["step"]]["began"]}
    ends = sorted(end for _, end in spans if window[0] <= end <= window[1])
    work = sum(line["world"] * covered([(line["began"], line["time"])], window) for line in kept.values())
    return {
        "goodput": useful / seconds,
        "at its own speed": 1 - (seconds - useful) / (seconds * speed),
        "of node time": work * speed / node_seconds(moments),
        "steps kept": len(ends),
        "steps made again": len(again),
        "longest pause": max(b - a for a, b in pairwise([window[0], *ends, window[1]])),
    }


def measure(url: str, moments: Sequence[Moment], speed: float, beside: bool = True) -> list[dict[str, Any]]:
    """Return one row for our launcher, and one for torchrun with c10d."""
    most, first = max(moment.nodes for moment in moments), moments[0].nodes
    rows = [_row("trainyard", lambda folder: in_place(folder, url, first, SCRIPT, most), moments, speed)]
    if beside:
        port = free_port()
        store = TCPStore("127.0.0.1", port, None, True, timedelta(hours=1), wait_for_workers=False)
        rows.append(_row("c10d", lambda folder: with_c10d(folder, port, first, most), moments, speed))
        del store
    return rows


def _row(name: str, start: Callable[[Path], Crowd], moments: Sequence[Moment], speed: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as crowd:
        window = replay(crowd, moments, speed)
        steps = lines(crowd.file)
    changes = {"changes": len(moments) - 2, "seconds": window[1] - window[0]}
    return {"launcher": name, **changes, **judged(steps, moments, speed, window)}
