"""Map Azure ML's job statuses to job states. Pure."""

from __future__ import annotations

from shared.jobs.model import JobState

# The statuses of azure.ai.ml.constants.JobStatus. An unlisted status counts as running: Azure ML reports Unknown when
# it loses contact with a job, and any other choice would end the run, or count a preemption that did not happen.
_STATES = {
    **dict.fromkeys(("notstarted", "queued", "preparing", "provisioning", "starting"), JobState.QUEUED),
    **dict.fromkeys(("running", "finalizing", "cancelrequested", "notresponding", "paused"), JobState.RUNNING),
    "completed": JobState.COMPLETED,
    "failed": JobState.FAILED,
    "canceled": JobState.CANCELED,
}


def state_of(status: str) -> JobState:
    """The job state for an Azure ML status."""
    return _STATES.get(status.replace("_", "").lower(), JobState.RUNNING)
