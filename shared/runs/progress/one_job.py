"""Base of the kinds of runs with one current job in Azure ML, under the run's name."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from shared.jobs.model import JobState
from shared.jobs.spec import HOUR_PROPERTY, JobSpec
from shared.runs.decide import why_step
from shared.runs.model import Run, RunState
from shared.runs.names import hour_of, plain_job
from shared.runs.progress.workload import NextStep, Statuses, Workload

MISSING_FOR = timedelta(days=1)  # a job that can't be found may be in a workspace that the settings no longer name


class OneJob(Workload):
    """The common parts of single jobs and pipelines."""

    def jobs(self, run: Run) -> dict[int, str]:
        return {0: run.name}

    def live_jobs(self, run: Run) -> list[str]:
        return [present_job(run)]

    def job_spec(self, run: Run, job: str, _rendezvous: str, _now: datetime) -> JobSpec:
        return replace(for_every_job(run, run.asked.request), name=job)

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        job = present_job(run)
        if job not in statuses:
            return None
        if (status := statuses[job]) is None:
            return _after_missing(run, job, now)
        if status.state is JobState.FAILED:
            words = status.failure.summary or "The job failed."
            return NextStep(run, RunState.FAILED, words, failed_job=job, failure=status.failure)
        return NextStep(run, RunState(status.state), status.error or why_step(run, status, now))

    def ranks(self, _run: Run) -> list[int] | None:
        """None: only a listing of the logs shows which ranks exist."""

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        return present_job(run), rank


def present_job(run: Run) -> str:
    """The name of the run's current job."""
    return plain_job(run.name, run.jobs.number)


def _after_missing(run: Run, job: str, now: datetime) -> NextStep | None:
    """The step of a run whose job Azure ML does not know: None until a delay can no longer explain it."""
    if run.progress.state is RunState.RECEIVED or now - run.progress.history[-1].at < MISSING_FOR:
        return None
    return NextStep(run, RunState.FAILED, f"Azure ML no longer has job {job}.")


def for_every_job(run: Run, request: JobSpec) -> JobSpec:
    """Add the needs of every job to the request: the property for listing jobs by hour, and refreshing mounts.

    Azure ML lists the jobs of all runs created in the same hour by this property. By default, a node's mount caches
    file content forever, and never sees the rest of a checkpoint that another node was still writing
    (https://learn.microsoft.com/azure/machine-learning/how-to-read-write-data-v2).
    """
    variables = {"DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1", **request.variables}
    properties = {**request.properties, HOUR_PROPERTY: hour_of(run.created_at)}
    return replace(request, variables=variables, properties=properties)
