"""Metrics of a run from MLflow, if it left no metrics files: rows as a trainer would have written them."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from shared.jobs.ports import Jobs
from shared.kernel.errors import Unavailable
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs
from shared.runs.decide import finite, has_run
from shared.runs.model import Run, RunState
from shared.runs.progress.workloads import workload

NAME = "metrics/mlflow.jsonl"  # in the archive
TRIES = 3  # of an archive that wait for MLflow; then it goes without
NOT_YET = frozenset({RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED})
log = logging.getLogger(__name__)
Points = Iterable[tuple[float, float, float]]


def rows(jobs: Jobs, run: Run) -> list[dict[str, Any]]:
    """`{"time", "step", <metric>: value, ...}` for each step, in the order of time. Empty for a run that never ran."""
    if not workload(run).logs_to_mlflow or (run.progress.state in NOT_YET and not has_run(run)):
        return []
    series: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for job in workload(run).jobs(run).values():  # more than one where its nodes were taken
        for metric, points in jobs.logged(job).items():
            series[metric] += points
    return merged(series)


def now(jobs: Jobs, run: Run) -> list[dict[str, Any]]:
    """The same for a view: empty while MLflow does not answer."""
    try:
        return rows(jobs, run)
    except Unavailable as exc:
        log.warning("run %s: %s", run.name, exc)
        return []


def merged(series: Mapping[str, Points]) -> list[dict[str, Any]]:
    """One row for what was logged at one step and moment. What is no finite number is left out."""
    rows_by_moment: dict[tuple[float, float], dict[str, Any]] = {}
    for metric, points in series.items():
        for step, value, at in points:
            if finite(value) is not None:
                rows_by_moment.setdefault((at, step), {"time": at, "step": step})[metric] = value
    return [rows_by_moment[key] for key in sorted(rows_by_moment)]


def keep(jobs: Jobs, blobs: Blobs, run: Run, folder: str) -> Blob | None:
    """Write what the run logged into its archive; None if nothing. The same rows give the same bytes."""
    try:
        logged_rows = rows(jobs, run)
    except Unavailable:
        if run.archive.tries < TRIES:
            raise
        return None
    if not logged_rows:
        return None
    data = "".join(f"{json.dumps(row)}\n" for row in logged_rows).encode()
    return blobs.write(OUTPUT_CONTAINER, f"{folder}/{NAME}", data, "application/x-ndjson")
