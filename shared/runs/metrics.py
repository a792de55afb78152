"""A run's metrics as series for curves, while it trains and from its archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.kernel.storage import Place
from shared.runs import logged
from shared.runs.archive import archive_folder, json_row
from shared.runs.decide import finite
from shared.runs.model import Run
from shared.system import OUTPUT_CONTAINER, System

MOST_POINTS = 2000  # of one series in an answer
MOST_SERIES = 200  # those that come first; a trainer that makes more has a fault
NO_SERIES = frozenset({"time", "step", "epoch"})

Point = tuple[float, float, float | None]


class Thinned:
    """A series in bounded memory: every k-th point, k doubling as it grows, and always the last one."""

    def __init__(self, limit: int = MOST_POINTS) -> None:
        self._limit = limit
        self._stride = 1
        self._seen = 0
        self._kept: list[Point] = []
        self._last: Point | None = None

    def add(self, point: Point) -> None:
        if self._seen % self._stride == 0:
            self._kept.append(point)
            if len(self._kept) >= self._limit:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._seen += 1
        self._last = point

    def points(self) -> list[Point]:
        """At most `limit` points, in the order in which they came."""
        return [*self._kept, *([self._last] if self._last and self._last is not self._kept[-1] else [])]


def series(system: System, name: str, wanted: str | None = None) -> dict[str, list[Point]]:
    """`{metric: [(step, value, unix time or None), ...]}` of every metrics/*.jsonl, or of the wanted ones.

    A run that has written none has what it logged to MLflow.

    `wanted` is a list of names with commas. A row without a step counts as the one after the last. What is no finite
    number is left out.
    """
    run = system.runs.get(name).value
    chosen = set(wanted.split(",")) if wanted else None
    found: dict[str, Thinned] = {}
    for step, row in _rows(system, run):
        at = finite(row.get("time"))
        for metric, value in row.items():
            if metric in NO_SERIES or (chosen and metric not in chosen) or (number := finite(value)) is None:
                continue
            if metric in found or len(found) < MOST_SERIES:
                found.setdefault(metric, Thinned()).add((step, number, at))
    return {metric: thinned.points() for metric, thinned in found.items()}


def _rows(system: System, run: Run) -> Iterator[tuple[float, dict[str, Any]]]:
    step, written = 0.0, False
    for row in _written(system, run):
        written = True
        given = finite(row.get("step"))
        step = step + 1 if given is None else given
        yield step, row
    if not written and run.archived_at is None:
        for row in logged.rows(system, run):
            yield row["step"], row


def _written(system: System, run: Run) -> Iterator[dict[str, Any]]:
    place = _place(system, run)
    for blob in system.blobs.list(place) if place else ():
        if blob.name.endswith(".jsonl"):
            for line in system.blobs.lines(place.container, blob.name) if place else ():
                if row := json_row(line):
                    yield row


def _place(system: System, run: Run) -> Place | None:
    """Where the metrics are; None for a job that has no such output."""
    if run.archived_at is not None:
        return Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/metrics/")
    output = (run.request.get("outputs") or {}).get("metrics") or {}
    return system.jobs.place(output["path"]) if output.get("path") else None
