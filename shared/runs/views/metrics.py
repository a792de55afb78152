"""A run's metrics as series for curves, during training and from the archive; complete, or since a cursor."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from shared.jobs.ports import Jobs, WorkspacePorts
from shared.kernel.errors import BadInput, Impossible
from shared.kernel.parsing import read_json
from shared.kernel.storage import Blobs
from shared.runs.decide import finite
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.results import metric_files, mlflow_metrics
from shared.runs.results.metric_files import Mark, MetricFile, Row
from shared.runs.views.downsample import Point, Thinned

MOST_POINTS = 2000  # per series in a response
MOST_SERIES = 200  # the first ones; more series indicate a bug in the trainer
NO_SERIES = frozenset({"time", "step"})
EPOCH = "epoch"  # a position, like the step: a page can draw other metrics over it
MOST_FILES = 100  # files that a cursor remembers

Series = dict[str, list[Point]]


@dataclass
class Cursor:
    """How far each file was read, and the last step. Callers return the cursor's text unchanged."""

    offsets: dict[str, int] = field(default_factory=dict)
    step: float = 0.0

    def __str__(self) -> str:
        text = json.dumps([self.offsets, self.step], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Parse a cursor. Raises Impossible for invalid text."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) or b"[{}, 0]"
            offsets, step = read_json(raw, "The cursor")
            if finite(step) is None or any(type(at) is not int or at < 0 for at in offsets.values()):
                raise ValueError("not offsets")
        except (BadInput, ValueError, TypeError, AttributeError) as exc:
            raise Impossible(
                "`after` is not a cursor of an earlier answer; leave it out to start at the beginning.", "bad_token"
            ) from exc
        return cls(offsets, step)


def series(ports: RunPorts, name: str, metrics: str | None = None, printed: bool = True) -> Series:
    """`{metric: [(step, value, unix time or None), ...]}` of all metrics, or of the named metrics.

    The metrics come from the run's files. If no file has curves, the values logged to MLflow, or else the printed
    values, come first. Without `printed`, no log is read; printed values have no time.

    `metrics` is a comma-separated list of names. A row without a step gets the step after the previous row's. Values
    that are not finite numbers are omitted.
    """
    all_series = since(ports, ports.runs.get(name).value, Cursor(), metrics, printed=printed)
    return {metric: points for metric, points in all_series.items() if metric != EPOCH}


EVERYWHERE = (-math.inf, math.inf)


def since(
    ports: WorkspacePorts,
    run: Run,
    cursor: Cursor,
    metrics: str | None = None,
    points: int = MOST_POINTS,
    steps: tuple[float, float] = EVERYWHERE,
    printed: bool = True,
) -> Series:
    """The points after the cursor, including those of the epoch. The cursor advances to the end of this reading.

    Only points from the first to the last of `steps` (inclusive) are returned.
    """
    chosen = set(metrics.split(",")) if metrics else None
    thinned_by_metric: dict[str, Thinned] = {}
    for step, row in _rows(ports.jobs, ports.blobs, run, cursor, printed):
        if not steps[0] <= step <= steps[1]:
            continue
        at = finite(row.get("time"))
        for metric, value in row.items():
            if metric in NO_SERIES or (chosen and metric not in chosen) or (number := finite(value)) is None:
                continue
            if metric in thinned_by_metric or len(thinned_by_metric) < MOST_SERIES:
                thinned_by_metric.setdefault(metric, Thinned(points)).add((step, number, at))
    return {metric: thinned.points() for metric, thinned in thinned_by_metric.items()}


def _rows(jobs: Jobs, blobs: Blobs, run: Run, cursor: Cursor, printed: bool) -> Iterator[tuple[float, Row]]:
    files = metric_files.written(jobs, blobs, run)
    curves = [file for file in files if file.has_curves]
    rows = _of_files(blobs, curves, cursor) if curves else _of_no_files(jobs, blobs, run, cursor, printed)
    documents = [file for file in files if not file.has_curves]
    for row in chain(rows, _of_files(blobs, documents, cursor)):
        given = finite(row.get("step"))
        cursor.step = cursor.step + 1 if given is None else given
        yield cursor.step, row


def _of_files(blobs: Blobs, files: Iterable[MetricFile], cursor: Cursor) -> Iterator[Row]:
    for file in files:
        mark = Mark(cursor.offsets.get(file.name, 0))
        yield from metric_files.rows(blobs, file, mark)
        if file.name in cursor.offsets or len(cursor.offsets) < MOST_FILES:
            cursor.offsets[file.name] = mark.at


def _of_no_files(jobs: Jobs, blobs: Blobs, run: Run, cursor: Cursor, printed: bool) -> Iterator[Row]:
    """The rows of a run without curves in files: logged to MLflow, or else printed."""
    begin = cursor.offsets.get(mlflow_metrics.NAME, 0)
    logged = [] if run.archive.at is not None else mlflow_metrics.now(jobs, run)
    for row in logged[begin:]:
        cursor.offsets[mlflow_metrics.NAME] = cursor.offsets.get(mlflow_metrics.NAME, 0) + 1
        yield row
    if printed and not logged:
        yield from _of_files(blobs, metric_files.printed(jobs, blobs, run), cursor)
