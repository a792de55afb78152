"""The table of all kinds of runs. A new kind is a class that inherits from `Workload`, and one entry here."""

from __future__ import annotations

from shared.jobs.spec import JobSpec
from shared.runs.model import Run
from shared.runs.progress.elastic_jobs import ElasticJobs
from shared.runs.progress.pipeline_job import PipelineJob
from shared.runs.progress.single_job import SingleJob
from shared.runs.progress.sweep_parent import SweepParent
from shared.runs.progress.workload import Workload

# A job is of the first kind that takes it. The last kind takes every job.
WORKLOADS: tuple[Workload, ...] = (SweepParent(), PipelineJob(), ElasticJobs(), SingleJob())


def workload(run: Run) -> Workload:
    """The kind of this run. A version before this table recorded an elastic run without a kind."""
    kind = run.asked.kind or (ElasticJobs.kind if run.jobs.elastic else SingleJob.kind)
    return next((each for each in WORKLOADS if each.kind == kind), WORKLOADS[-1])


def workload_of_job(job: JobSpec) -> Workload:
    """The kind of a run that would be made of this job."""
    return next(each for each in WORKLOADS if each.takes(job))
