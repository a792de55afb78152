"""A run's metrics from MLflow, if the run has no metrics files, in the form of a trainer's rows."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from shared.jobs.ports import Jobs
from shared.kernel.errors import Unavailable
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.decide import finite, has_run
from shared.runs.model import Run, RunState
from shared.runs.progress.workloads import workload

NAME = "metrics/mlflow.jsonl"  # in the archive
TRIES = 3  # tries to archive that wait for MLflow; later tries continue without MLflow
NOT_YET = frozenset({RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED})
log = logging.getLogger(__name__)
Points = Iterable[tuple[float, float, float]]


def rows(jobs: Jobs, run: Run) -> list[dict[str, Any]]:
    """`{"time", "step", <metric>: value, ...}` for each step, ordered by time. Empty for a run that never ran."""
    if not workload(run).logs_to_mlflow or (run.progress.state in NOT_YET and not has_run(run)):
        return []
    series: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for job in workload(run).jobs(run).values():  # more than one job if nodes were lost
        for metric, points in jobs.logged(job).items():
            series[metric] += points
    return merged(series)


def now(jobs: Jobs, run: Run) -> list[dict[str, Any]]:
    """Like `rows`, for views: empty while MLflow does not answer."""
    try:
        return rows(jobs, run)
    except Unavailable as exc:
        log.warning("run %s: %s", run.name, exc)
        return []


def merged(series: Mapping[str, Points]) -> list[dict[str, Any]]:
    """One row for values of equal step and time. Values other than finite numbers are omitted."""
    rows_by_moment: dict[tuple[float, float], dict[str, Any]] = {}
    for metric, points in series.items():
        for step, value, at in points:
            if finite(value) is not None:
                rows_by_moment.setdefault((at, step), {"time": at, "step": step})[metric] = value
    return [rows_by_moment[key] for key in sorted(rows_by_moment)]


def keep(jobs: Jobs, blobs: Blobs, run: Run, folder: str) -> Blob | None:
    """Write the values logged to MLflow into the archive; None without values.

    The same rows produce the same bytes, and a file with these bytes is not written again: the manifest of a concurrent
    archiver may already name its etag.
    """
    try:
        logged_rows = rows(jobs, run)
    except Unavailable:
        if run.archiving.tries < TRIES:
            raise
        return None
    if not logged_rows:
        return None
    data = "".join(f"{json.dumps(row)}\n" for row in logged_rows).encode()
    name, kind = f"{folder}/{NAME}", "application/x-ndjson"
    blobs.write_once(OUTPUT_CONTAINER, name, data, kind)
    there = blobs.first(Place(OUTPUT_CONTAINER, name))
    if there and there.name == name and there.md5 == hashlib.md5(data, usedforsecurity=False).hexdigest():
        return there
    return blobs.write(OUTPUT_CONTAINER, name, data, kind)
