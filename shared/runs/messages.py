"""The queue messages of runs. Messages that share a queue are distinguished by their class name on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.jobs.readers import run_event
from shared.kernel.message import BACKGROUND, CHECKS, Json, Message, Trace
from shared.runs.names import run_of_job


@dataclass(frozen=True)
class SubmitRun(
    Message,
    queue="submissions",
    handler="shared.runs.progress.submit:submit_run",
    done="shared.runs.done:is_submitted",
):
    """Submit the run's job to Azure ML, or cancel the run if someone requested that. `drop`: the origin of the run."""

    run: str
    drop: str = ""

    @property
    def trace(self) -> Trace:
        return Trace(run=self.run, follows=self.drop)


@dataclass(frozen=True)
class JobEvent(
    Message,
    queue="job-events",
    handler="shared.runs.progress.follow:follow_job",
    done="shared.runs.done:is_followed",
):
    """An Azure ML event about a job. `status` is the event's status, '' if the event has none; it may be outdated.

    `at` is the time of the event by Azure's clock, None if the event has no readable time.
    """

    job: str
    status: str = ""
    at: datetime | None = None

    @property
    def trace(self) -> Trace:
        return Trace(run=run_of_job(self.job))

    @property
    def turn(self) -> str:
        return self.trace.run  # several events of one run arrive together, and usually report the same status

    @classmethod
    def read(cls, body: Json, form: str) -> JobEvent | None:  # noqa: ARG003
        job = run_event.job_of(body)
        return cls(job, run_event.status_of(body), run_event.time_of(body)) if job else None


@dataclass(frozen=True)
class CheckData(Message, queue=CHECKS, handler="shared.runs.data:check_data", done="shared.runs.done:is_data_checked"):
    """Compare the drop of a run whose jobs started or ended with the data for which the run was made."""

    data_of: str  # the run; the version before knows the message by this key

    @property
    def trace(self) -> Trace:
        return Trace(run=self.data_of)


@dataclass(frozen=True)
class CheckHour(
    Message,
    queue=CHECKS,
    handler="shared.runs.progress.hourly_reconcile:reconcile_hour",
    done="shared.runs.done:is_hour_over",
):
    """Reconcile the runs of one hour of creation, in case of lost events."""

    hour: str


@dataclass(frozen=True)
class ArchiveRun(
    Message,
    queue=BACKGROUND,
    handler="shared.runs.results.archive:archive_run",
    done="shared.runs.done:is_archived",
):
    """Archive a final run. An archived run stays unchanged."""

    run: str

    @property
    def trace(self) -> Trace:
        return Trace(run=self.run)
