"""Submit a job of a run. Azure ML may carry out a request whose answer never came, after the run has ended."""

from __future__ import annotations

import logging

from shared.jobs.model import JobStatus
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Unavailable
from shared.runs.decide import is_over
from shared.runs.find_run import find_run
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.ports import RunPorts, Runs

log = logging.getLogger(__name__)


def put_job(ports: RunPorts, run: str, job: JobSpec) -> JobStatus:
    """Submit the job. If no answer comes and the run has ended meanwhile, cancel the job.

    A run with a date may go to nodes of the other tier, so the job's time limit is capped once more here. A cancel that
    comes before the job does nothing: shared/clusters/stray_jobs.py ends a job that appears later.
    """
    try:
        return ports.jobs.submit(within_lifetime(ports.capacity, job)[0])
    except Unavailable:
        if has_ended(ports.runs, run):
            log.warning("run %s ended while job %s was submitted, and no answer came: it is canceled", run, job.name)
            ports.jobs.cancel(job.name)
        raise


def has_ended(runs: Runs, run: str) -> bool:
    """Return whether the run has ended, or was asked to end, by its newest row. False for an unknown run."""
    row = find_run(runs, run)
    return row is not None and (is_over(row) or row.cancel.asked_at is not None)
