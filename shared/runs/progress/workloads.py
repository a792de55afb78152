"""The one place that knows whether a run is elastic."""

from __future__ import annotations

from shared.runs.model import Run
from shared.runs.progress.elastic_jobs import MEMBERS
from shared.runs.progress.single_job import PLAIN
from shared.runs.progress.workload import Workload


def workload(run: Run) -> Workload:
    """What carries out this run: one job, or the members of an elastic run."""
    return PLAIN if run.jobs.elastic is None else MEMBERS
