"""The one place that knows whether a run is elastic, a sweep, or a pipeline."""

from __future__ import annotations

from shared.runs.model import PIPELINE, SWEEP, Run
from shared.runs.progress.elastic_jobs import MEMBERS
from shared.runs.progress.pipeline_job import STEPS
from shared.runs.progress.single_job import PLAIN
from shared.runs.progress.sweep_parent import PARENT
from shared.runs.progress.workload import Workload


def workload(run: Run) -> Workload:
    """What carries out this run: one job, the members of an elastic run, or the trials of a sweep."""
    if run.asked.kind == SWEEP:
        return PARENT
    if run.asked.kind == PIPELINE:
        return STEPS
    return PLAIN if run.jobs.elastic is None else MEMBERS
