"""The record of a run, from the job that it will send. Whoever makes a run begins here, so none forgets a field."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.jobs.job import cluster, nodes, timeout
from shared.jobs.parameters import resolved
from shared.runs.model import Run
from shared.runs.progress.elastic_policy import begin


def run_of(name: str, job: dict[str, Any], bounds: tuple[int, int], at: datetime) -> Run:
    """What the job itself says of the run; the caller adds where it comes from. `bounds` are those of `begin`."""
    return Run.of(
        name=name,
        drop="",
        route="",
        fingerprint="",
        experiment=str(job.get("experiment_name") or ""),
        cluster=cluster(job),
        nodes=nodes(job),
        created_at=at,
        request=job,
        parameters=resolved(job),
        elastic=begin(job, bounds, at),
        resubmissions=bounds[1],
        timeout_seconds=timeout(job, otherwise=0),
    )
