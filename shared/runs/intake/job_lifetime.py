"""Cap the time limits of jobs below the lifetime that Azure ML gives a job.

Azure ML ends a job after 21 days, and a job on low-priority nodes after 7 days. The data of such a job is not
accessible, so a job's own limit ends the job an hour earlier:
https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas#azure-machine-learning-compute
"""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.limits import JOB_DAYS, LOW_PRIORITY_JOB_DAYS, lifetime_seconds
from shared.jobs.readers.pipeline import with_steps
from shared.jobs.spec import PIPELINE, JobSpec
from shared.runs.ports import Capacity


def within_lifetime(capacity: Capacity, job: JobSpec) -> tuple[JobSpec, str]:
    """Return the job with time limits that Azure ML can grant, and a sentence for each lowered limit, else ''.

    The limit of a pipeline as a whole stays, because Azure ML ends jobs on nodes: its steps are capped, each for its
    own cluster. The tier of a cluster is requested only for a limit near 7 days or above. Raises Unavailable if Azure
    ML can't be reached then.
    """
    if job.kind != PIPELINE:
        return _within(capacity, job, "Its time limit")
    reasons = []

    def capped(step: JobSpec) -> JobSpec:
        seconds = step.timeout_seconds or job.timeout_seconds
        whole = replace(step, cluster=step.cluster or job.cluster, timeout_seconds=seconds)
        within, why = _within(capacity, whole, f"The time limit of step {step.name}")
        reasons.append(why)
        return replace(step, timeout_seconds=within.timeout_seconds) if why else step

    lower = with_steps(job, capped)
    return (lower, " ".join(filter(None, reasons))) if any(reasons) else (job, "")


def _within(capacity: Capacity, job: JobSpec, whose: str) -> tuple[JobSpec, str]:
    if job.timeout_seconds <= lifetime_seconds(LOW_PRIORITY_JOB_DAYS):
        return job, ""
    low = capacity.is_low_priority(job.cluster)
    days = LOW_PRIORITY_JOB_DAYS if low else JOB_DAYS
    if job.timeout_seconds <= (most := lifetime_seconds(days)):
        return job, ""
    where = f" on low-priority nodes, such as those of {job.cluster}," if low else ""
    why = (
        f"{whose} is {most / 3600:g} h instead of {job.timeout_seconds / 3600:g} h: Azure ML ends a job{where} after "
        f"{days} days, and its data is not accessible then."
    )
    return replace(job, timeout_seconds=most), why
