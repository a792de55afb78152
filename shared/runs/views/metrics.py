"""A run's metrics as series for curves, while it trains and from its archive; all, or what is new."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.jobs.ports import HasJobs, Jobs
from shared.kernel.errors import BadInput, Impossible
from shared.kernel.has import HasBlobs
from shared.kernel.parsing import read_json
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.decide import finite
from shared.runs.model import Run
from shared.runs.ports import HasRuns
from shared.runs.results import mlflow_metrics
from shared.runs.results.archive import archive_folder, json_row
from shared.runs.views.downsample import Point, Thinned

MOST_POINTS = 2000  # of one series in an answer
MOST_SERIES = 200  # those that come first; a trainer that makes more has a fault
NO_SERIES = frozenset({"time", "step"})
EPOCH = "epoch"  # says where a point stands, as the step does; a page draws across it
PIECE = 4 << 20  # bytes read at once
MOST_BYTES = 64 << 20  # of one file in one look; the next look goes on there
MOST_FILES = 100  # that a cursor remembers

Series = dict[str, list[Point]]


class Ports(HasBlobs, HasJobs, HasRuns, Protocol):
    """What is needed here from outside."""


@dataclass
class Cursor:
    """How far each file was read, and the last step. It travels as text, which a caller gives back as it is."""

    offsets: dict[str, int] = field(default_factory=dict)
    step: float = 0.0

    def __str__(self) -> str:
        text = json.dumps([self.offsets, self.step], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Raises Impossible for what is no cursor."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) or b"[{}, 0]"
            offsets, step = read_json(raw, "The cursor")
            if finite(step) is None or any(type(at) is not int or at < 0 for at in offsets.values()):
                raise ValueError("not offsets")
        except (BadInput, ValueError, TypeError, AttributeError) as exc:
            raise Impossible("`after` is no cursor of an earlier answer; leave it out to begin.", "bad_token") from exc
        return cls(offsets, step)


def series(ports: Ports, name: str, metrics: str | None = None) -> Series:
    """`{metric: [(step, value, unix time or None), ...]}` of every metrics/*.jsonl, or of those named.

    A run that has written none has what it logged to MLflow.

    `metrics` is a list of names with commas. A row without a step counts as the one after the last. What is no finite
    number is left out.
    """
    all_series = since(ports, ports.runs.get(name).value, Cursor(), metrics)
    return {metric: points for metric, points in all_series.items() if metric != EPOCH}


EVERYWHERE = (-math.inf, math.inf)


def since(
    ports: Ports,
    run: Run,
    cursor: Cursor,
    metrics: str | None = None,
    points: int = MOST_POINTS,
    steps: tuple[float, float] = EVERYWHERE,
) -> Series:
    """The points that came after the cursor, which goes on to where this look ended; those of the epoch too.

    Only those between the two `steps`, which are in.
    """
    chosen = set(metrics.split(",")) if metrics else None
    thinned_by_metric: dict[str, Thinned] = {}
    for step, row in _rows(ports, run, cursor):
        if not steps[0] <= step <= steps[1]:
            continue
        at = finite(row.get("time"))
        for metric, value in row.items():
            if metric in NO_SERIES or (chosen and metric not in chosen) or (number := finite(value)) is None:
                continue
            if metric in thinned_by_metric or len(thinned_by_metric) < MOST_SERIES:
                thinned_by_metric.setdefault(metric, Thinned(points)).add((step, number, at))
    return {metric: thinned.points() for metric, thinned in thinned_by_metric.items()}


def _rows(ports: Ports, run: Run, cursor: Cursor) -> Iterator[tuple[float, dict[str, Any]]]:
    place, written = _place(ports.jobs, run), False
    for blob in ports.blobs.list(place) if place else ():
        if place and blob.name.endswith(".jsonl"):
            written = True
            for line in _lines(ports.blobs, place, blob, cursor, whole=run.archive.at is not None):
                if row := json_row(line.decode("utf-8", "replace")):
                    given = finite(row.get("step"))
                    cursor.step = cursor.step + 1 if given is None else given
                    yield cursor.step, row
    if not written and run.archive.at is None:
        for row in mlflow_metrics.now(ports.jobs, run)[cursor.offsets.get(mlflow_metrics.NAME, 0) :]:
            cursor.offsets[mlflow_metrics.NAME] = cursor.offsets.get(mlflow_metrics.NAME, 0) + 1
            yield row["step"], row


def _lines(blobs: Blobs, place: Place, blob: Blob, cursor: Cursor, whole: bool) -> Iterator[bytes]:
    """The file's lines from the cursor on. The last one counts without its end only if the file won't grow."""
    name = blob.name.removeprefix(place.prefix)
    offset = cursor.offsets.get(name, 0)
    end, rest = min(blob.size, offset + MOST_BYTES), b""
    while offset < end:
        piece = blobs.read_from(place.container, blob.name, offset, min(PIECE, end - offset))
        if not piece:
            break
        offset += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest and whole and offset >= blob.size:
        yield rest
        rest = b""
    if name in cursor.offsets or len(cursor.offsets) < MOST_FILES:
        cursor.offsets[name] = offset - len(rest)


def _place(jobs: Jobs, run: Run) -> Place | None:
    """Where the metrics are; None for a job that has no such output."""
    if run.archive.at is not None:
        return Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/metrics/")
    output = run.asked.request.outputs.get("metrics")
    return jobs.place(output.path) if output and output.path else None
