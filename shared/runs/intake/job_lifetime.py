"""Cap the time limit of a new run at the lifetime that Azure ML gives a job.

Azure ML ends a job after 21 days, and a job on low-priority nodes after 7 days
(https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas#azure-machine-learning-compute).
"""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.limits import DAY, JOB_DAYS, LOW_PRIORITY_JOB_DAYS
from shared.jobs.spec import JobSpec
from shared.runs.ports import Capacity


def within_lifetime(capacity: Capacity, job: JobSpec) -> tuple[JobSpec, str]:
    """Return the job with a time limit that Azure ML can grant, and a sentence if the limit was lowered, else ''.

    The cluster's tier is requested only for a limit above 7 days. Raises Unavailable if Azure ML can't be reached then.
    """
    if job.timeout_seconds <= LOW_PRIORITY_JOB_DAYS * DAY:
        return job, ""
    low = capacity.is_low_priority(job.cluster)
    days = LOW_PRIORITY_JOB_DAYS if low else JOB_DAYS
    if job.timeout_seconds <= days * DAY:
        return job, ""
    where = f" on low-priority nodes, such as those of {job.cluster}," if low else ""
    why = (
        f"Its time limit is {days} days instead of {job.timeout_seconds / DAY:.3g}: Azure ML ends a job{where} after "
        f"{days} days."
    )
    return replace(job, timeout_seconds=days * DAY), why
