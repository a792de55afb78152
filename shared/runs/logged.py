"""What a run logged to MLflow, where it left no metrics files of its own: rows as a trainer would have written them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from shared.kernel.errors import Unavailable
from shared.kernel.storage import Blob
from shared.runs.decide import finite
from shared.runs.model import Run
from shared.system import OUTPUT_CONTAINER, System

NAME = "metrics/mlflow.jsonl"  # in the archive
TRIES = 3  # of an archive that wait for MLflow; then it goes without
Points = Iterable[tuple[float, float, float]]


def rows(system: System, run: Run) -> list[dict[str, Any]]:
    """`{"time", "step", <metric>: value, ...}` for each step, in the order of time. Empty for a run without a job."""
    if run.elastic is not None or not run.job:
        return []
    return merged(system.jobs.logged(run.name))


def merged(series: Mapping[str, Points]) -> list[dict[str, Any]]:
    """One row for what was logged at one step and moment. What is no finite number is left out."""
    found: dict[tuple[float, float], dict[str, Any]] = {}
    for metric, points in series.items():
        for step, value, at in points:
            if finite(value) is not None:
                found.setdefault((at, step), {"time": at, "step": step})[metric] = value
    return [found[key] for key in sorted(found)]


def keep(system: System, run: Run, folder: str) -> Blob | None:
    """Write what the run logged into its archive; None if that is nothing. The same rows give the same bytes."""
    try:
        found = rows(system, run)
    except Unavailable:
        if run.archive_tries < TRIES:
            raise
        return None
    if not found:
        return None
    data = "".join(f"{json.dumps(row)}\n" for row in found).encode()
    return system.blobs.write(OUTPUT_CONTAINER, f"{folder}/{NAME}", data, "application/x-ndjson")
