"""Follow a run's jobs in Azure ML, and update the run's row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from itertools import islice

from msgspec.structs import replace as with_

from shared.jobs.model import UNKNOWN_FAILURE, JobFailure, JobFolderPart, JobState, JobStatus
from shared.jobs.ports import Jobs, WorkspacePorts
from shared.jobs.readers.job_status import state_of
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import BadInput, NotFound
from shared.kernel.storage import Blobs, Place, Queues
from shared.kernel.versioned import Stored
from shared.runs.decide import advance, failing_log, is_over
from shared.runs.facts import RunAdvances, RunLosesNodes, RunSubmitted
from shared.runs.messages import JobEvent
from shared.runs.model import Run, RunState
from shared.runs.names import run_of_job
from shared.runs.ports import RunPorts
from shared.runs.progress.cancel import give_up
from shared.runs.progress.transitions import ask_for_archive, write_transition
from shared.runs.progress.workload import NextStep, Statuses
from shared.runs.progress.workloads import workload

CLOCKS_DIFFER = timedelta(seconds=1)  # at most, the clocks of the app and of Azure ML
ARCHIVE_PATIENCE = timedelta(seconds=30)  # until an archive that was requested is requested again
LOGS_READ = 16  # maximum number of rank logs to read for the reason of a failure
TAIL_BYTES = 4096
_UNEXPLAINED = "The job failed."
TAIL_LINES = 15
TAIL_LIMIT = 7000  # characters


def follow_job(ports: RunPorts, event: JobEvent) -> None:
    """Update the run's row from the current status of this job. Names of foreign jobs are ignored.

    An event only triggers the check. The job's status is requested after the row's etag was read, so of two concurrent
    checks the later one wins. The check costs one request to Azure ML, whatever the run's size, and a second request
    for a failed job.

    The check costs no request if the event repeats the status in the row, or if it reports no end while Azure ML is
    limiting requests: the hourly reconcile then lists many jobs together.
    """
    job, told, name = event.job, event.status, run_of_job(event.job)
    try:
        stored = ports.runs.recent(name)
        if not _is_sufficient(ports.jobs, stored.value, job, told):
            stored = ports.runs.get(name)
    except NotFound:
        return

    def bring_up(stored: Stored[Run]) -> None:
        if is_over(stored.value):
            _check_archived(ports.queues, ports.clock, stored.value)
            return
        stored = _with_past_loss(ports, stored, event)
        if not _can_ignore(ports.jobs, stored.value, told):
            jobs_to_ask = _jobs_to_ask(stored.value, job)
            follow(ports, stored, {each: ports.jobs.status(each) for each in jobs_to_ask}, archives=True)

    compare_and_set(ports.clock, f"Run {name}", lambda: ports.runs.get(name), bring_up, first=lambda: stored)


def _with_past_loss(ports: RunPorts, stored: Stored[Run], event: JobEvent) -> Stored[Run]:
    """The run after the loss of nodes that this event proves; the unchanged run if the event proves none.

    Azure ML may restart a job that lost its nodes (docs/source/lowpriority.md of github.com/microsoft/hi-ml; "Check if
    the run has failed or restarted", github.com/Azure/MachineLearningNotebooks/issues/1242). If no worker of the app
    ran meanwhile, the job's status is the same as before, and only the event tells of the loss: Azure ML queued the job
    at a time at which the row already had the job as running.
    """
    since = workload(stored.value).running_since(stored.value, event.job)
    queued = bool(event.status) and state_of(event.status) is JobState.QUEUED
    if not queued or since is None or event.at is None or event.at - since <= CLOCKS_DIFFER:
        return stored
    follow(ports, stored, {event.job: JobStatus(event.job, JobState.QUEUED, event.status)})
    return ports.runs.get(stored.value.name)


def _is_sufficient(jobs: Jobs, run: Run, job: str, told: str) -> bool:
    """Whether the cached run is sufficient to choose the jobs to request, or to request none."""
    if is_over(run) or _can_ignore(jobs, run, told):
        return True
    return bool(_jobs_to_ask(run, job)) and not workload(run).replaces_jobs


def _jobs_to_ask(run: Run, job: str) -> Collection[str]:
    """The jobs whose status to request after an event: the event's job, or all live jobs for the run's own name."""
    live = workload(run).live_jobs(run)
    return [job] if job in live else live if job == run.name else []


def _check_archived(queues: Queues, clock: Clock, run: Run) -> None:
    """Request the archive of a run with an overdue archive."""
    waited = clock() - run.progress.history[-1].at
    if run.archive.at is None and waited > ARCHIVE_PATIENCE:
        ask_for_archive(queues, run.name)


def _can_ignore(jobs: Jobs, run: Run, told: str) -> bool:
    """Whether an event with this status ('': no status) needs no request to Azure ML."""
    if not told or run.progress.state is RunState.RECEIVED:
        return False
    return workload(run).can_ignore(run, RunState(state_of(told)), jobs.scarce())


def follow(ports: RunPorts, stored: Stored[Run], statuses: Statuses, archives: bool = False) -> None:
    """Record the jobs' statuses, then act on the decision. Raises Changed if the row changed in the meantime.

    With `archives`, the last step of a small run is written together with its archive. Otherwise a message archives the
    run, which is better if one handler updates many runs.
    """
    run = stored.value
    how = workload(run)
    step = how.decide(run, statuses, ports.clock())
    if step is None:
        return
    _before_the_write(ports, run, step)
    after = advance(step.run, step.state, ports.clock(), step.why, step.failure.code if step.failure else None)
    if after is not step.run and step.state is RunState.FAILED:
        after = replace(
            after, progress=replace(after.progress, failure=_explained_failure(ports.jobs, ports.blobs, step))
        )
    if (losses := how.losses(run)) != how.losses(after):  # before the step is written: a crash repeats both
        ports.happened(RunLosesNodes(run, losses, how.losses(after)))
    moved = frozenset(how.running_jobs(run) ^ how.running_jobs(after))
    after = ports.written_with(RunAdvances(after, moved, archives))
    _act(ports, write_transition(ports, stored, after), step)


def _before_the_write(ports: WorkspacePorts, run: Run, step: NextStep) -> None:
    """The tasks that a retry after the write would skip: report jobs of a crashed submitter, and cancel jobs."""
    if run.progress.state is RunState.RECEIVED:
        ports.happened(RunSubmitted(run))
    for job in step.to_cancel:
        ports.jobs.cancel(job)


def _act(ports: RunPorts, after: Stored[Run], step: NextStep) -> None:
    """Submit the step's required jobs, and record the submitted jobs."""
    how = workload(after.value)
    try:
        sent = how.act(ports, after.value, step)
    except BadInput as exc:
        give_up(ports, after.value, f"A member's job could not be submitted. {exc}")
        return
    if (submitted := how.after_submission(after.value, sent)) != after.value:
        ports.runs.update(after, submitted)


def explained(jobs: Jobs, seen: dict[str, JobStatus | None]) -> dict[str, JobStatus | None]:
    """Statuses from a list, completed with Azure ML's account of each failure and with the steps of pipelines."""
    untold = [
        name
        for name, status in seen.items()
        if status and (status.steps is None or (status.state is JobState.FAILED and not status.error))
    ]
    return seen | {name: jobs.status(name) or _unexplained(seen[name]) for name in untold}


def _unexplained(status: JobStatus | None) -> JobStatus | None:
    return replace(status, error=status.error or _UNEXPLAINED) if status and status.state is JobState.FAILED else status


def _explained_failure(jobs: Jobs, blobs: Blobs, step: NextStep) -> JobFailure:
    """The reason of the run's failure, with the tail of the explaining log."""
    failure = step.failure or UNKNOWN_FAILURE
    log, tail = _failing_log(jobs, blobs, step.failed_job, failure.log) if step.failed_job else ("", "")
    return with_(failure, log=log, tail=tail[:TAIL_LIMIT])


def _failing_log(jobs: Jobs, blobs: Blobs, job: str, named: str) -> tuple[str, str]:
    """Name and last lines of the log with the explanation of the failure: the named log, or an existing log."""
    try:
        place = jobs.folder(job).inside(JobFolderPart.LOGS)
    except (NotFound, BadInput):  # a workspace without the datastore of the logs
        return "", ""
    names = [named] if named else _log_names(blobs, place)
    tails = {n: blobs.tail(place.container, f"{place.prefix}{n}", TAIL_BYTES) for n in names}
    return failing_log(tails, TAIL_LINES)


def _log_names(blobs: Blobs, place: Place) -> list[str]:
    return [blob.name.rpartition("/")[2] for blob in islice(blobs.list(place), LOGS_READ)]
