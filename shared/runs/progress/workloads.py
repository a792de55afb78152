"""The table of all kinds of runs.

A new kind is a class that inherits from `Workload`, and an entry here or in the kind's feature.
"""

from __future__ import annotations

from functools import cache

from shared.jobs.spec import JobSpec
from shared.runs.features import features
from shared.runs.model import Run
from shared.runs.progress.single_job import SingleJob
from shared.runs.progress.workload import Workload


@cache
def workloads() -> tuple[Workload, ...]:
    """All kinds, in order. A job has the first accepting kind; the last kind accepts every job."""
    of_features = (kind for feature in features() for kind in feature.workloads)
    return (*of_features, SingleJob())


def workload(run: Run) -> Workload:
    """The kind of this run. A run of an unknown kind, which a later version wrote, is handled as a single job."""
    return next((each for each in workloads() if each.kind == run.asked.kind), workloads()[-1])


def workload_of_job(job: JobSpec) -> Workload:
    """The kind of a new run with this job."""
    return next(each for each in workloads() if each.accepts(job))
