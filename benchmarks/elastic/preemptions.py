"""Traces of preemptions, and the share of wall time that ends in kept steps. Pure functions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Span = tuple[float, float]


@dataclass(frozen=True)
class Moment:
    """Number of nodes since `time` (seconds). The last moment of a trace is its end."""

    time: float
    nodes: int


def synthetic(seed: int, nodes: int = 8, seconds: int = 7200, pause: int = 720, away: int = 300) -> list[Moment]:
    """Return a synthetic trace. Losses come at random, every `pause` seconds on average; some losses take several
    nodes at once, as when a provider needs the capacity. Each node returns after `away` seconds on average. One
    node always stays."""
    dice = random.Random(seed)
    changes: list[tuple[float, int]] = []
    at = dice.expovariate(1 / pause)
    while at < seconds:
        for _ in range(dice.choices((1, 2, 4), (8, 2, 1))[0]):
            changes += [(at, -1), (at + dice.expovariate(1 / away), 1)]
        at += dice.expovariate(1 / pause)
    found, there = {0: nodes}, nodes
    for moment, change in sorted(changes):
        there += change
        found[round(moment)] = max(1, min(nodes, there))
    kept = [Moment(moment, count) for moment, count in found.items() if moment < seconds]
    told = [m for before, m in zip([None, *kept], kept, strict=False) if before is None or before.nodes != m.nodes]
    return [*told, Moment(seconds, told[-1].nodes)]


def read(path: Path) -> list[Moment]:
    """Read a trace from JSON: [{"time": seconds, "nodes": N}, ...]."""
    entries = json.loads(path.read_text())
    return sorted((Moment(float(e["time"]), int(e["nodes"])) for e in entries), key=lambda moment: moment.time)


def written(moments: Iterable[Moment]) -> str:
    """Return a trace as JSON, one line for each moment."""
    entries = [f'  {{"time": {moment.time:g}, "nodes": {moment.nodes}}}' for moment in moments]
    return "[\n" + ",\n".join(entries) + "\n]\n"


def first_part(moments: Sequence[Moment], seconds: float) -> list[Moment]:
    """Return the trace up to this time."""
    if seconds >= moments[-1].time:
        return list(moments)
    kept = [moment for moment in moments if moment.time < seconds]
    return [*kept, Moment(seconds, kept[-1].nodes)]


def node_seconds(moments: Sequence[Moment]) -> float:
    """Return the total seconds that the nodes of a trace are present."""
    return sum(a.nodes * (b.time - a.time) for a, b in pairwise(moments))


def kept_steps(lines: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the last record of each step. Earlier records of the same step, from before a resumed checkpoint, do
    not count."""
    kept: dict[int, dict[str, Any]] = {}
    for line in sorted(lines, key=lambda line: line["time"]):
        kept[line["step"]] = line
    return kept


def covered(spans: Iterable[Span], window: Span) -> float:
    """Return the seconds of the window that at least one span covers."""
    done, total = window[0], 0.0
    for begin, end in sorted(spans):
        begin, end = max(begin, done), min(end, window[1])
        if end > begin:
            total, done = total + end - begin, end
    return total
