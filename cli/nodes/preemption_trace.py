"""A preemption trace, which is the number of available nodes over time, and the record of its replay against a run."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import CliError
from ..show.plot import Curves, Point

AT_WORK, LOSSES = "world_size", ("train_loss", "test_loss", "loss")
TRACE, WORK = "in the trace", "at work"


@dataclass(frozen=True)
class Moment:
    """The number of available nodes from `time` on, in seconds since the beginning of the trace."""

    time: float
    nodes: int


def read_trace(path: Path) -> list[Moment]:
    """Read a trace, sorted by time. Raises CliError with the first invalid entry."""
    try:
        entries = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CliError(f"{path}: {error}", "bad_trace") from error
    for entry in entries if isinstance(entries, list) else [entries]:
        numbers = isinstance(entry, dict) and [entry.get("time"), entry.get("nodes")]
        if not numbers or not all(isinstance(n, int | float) and n >= 0 for n in numbers):
            raise CliError(f"{path}: expected [{{time: seconds, nodes: N}}, ...], found {entry!r}", "bad_trace")
    return sorted((Moment(float(e["time"]), int(e["nodes"])) for e in entries), key=lambda moment: moment.time)


@dataclass(frozen=True)
class Trace:
    """A trace to replay, `speed` times faster than recorded."""

    name: str
    moments: list[Moment]
    speed: float

    @property
    def title(self) -> str:
        return f"trace {self.name}" + (f", {self.speed:g} times faster" if self.speed != 1 else "")


@dataclass
class Replay:
    """A replay that began at `began` (Unix time). `taken` holds the seconds of the replay at which a node was
    evicted."""

    run: str
    trace: Trace
    began: float
    taken: list[float] = field(default_factory=list)

    def seconds(self) -> float:
        """Return the seconds since the replay began."""
        return time.time() - self.began

    def curves(self, series: dict[str, Any]) -> Curves:
        """Return the curves over the seconds of the replay: nodes in the trace, processes at work and losses, from the
        API's series.

        Counts of nodes and processes are steps, so each change has two points.
        """
        end = self.seconds()
        of_trace = [(m.time / self.trace.speed, float(m.nodes)) for m in self.trace.moments]
        curves: dict[str, Sequence[Point]] = {TRACE: _stairs(of_trace, end)}
        at = {name: self._over_time(rows) for name, rows in series.items() if name in (AT_WORK, *LOSSES)}
        if at.get(AT_WORK):
            curves[WORK] = _stairs(at[AT_WORK], end)
        curves |= {name: at[name] for name in LOSSES if at.get(name)}
        return curves

    def _over_time(self, rows: list[list[float | None]]) -> list[Point]:
        points = [(when - self.began, value) for _, value, when in rows if when is not None and value is not None]
        return sorted(point for point in points if point[0] >= 0)


def _stairs(points: list[Point], end: float) -> list[Point]:
    """Return the corners of a step line that keeps each value until the next point, up to `end`."""
    inside = [point for point in points if point[0] <= end]
    if not inside:
        return []
    corners = [(at, before) for (_, before), (at, _) in pairwise(inside)]
    return [
        inside[0],
        *(point for pair in zip(corners, inside[1:], strict=True) for point in pair),
        (end, inside[-1][1]),
    ]
