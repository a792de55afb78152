"""Submit a run to Azure ML, or cancel it."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Protocol

from shared.jobs.ports import HasJobs, HasTrainers, Jobs
from shared.kernel.errors import BadInput, Conflict
from shared.kernel.has import HasBlobs, HasClock, HasFacts, HasQueues
from shared.kernel.parts import flat
from shared.kernel.person import NOBODY, Person
from shared.runs.decide import advance, is_over
from shared.runs.facts import RunSubmitted
from shared.runs.intake.warm_start import bring_back
from shared.runs.model import Run, RunState
from shared.runs.ports import PRICED, HasPurse, HasRendezvous, HasRuns
from shared.runs.progress.cancel import give_up
from shared.runs.progress.transitions import transition
from shared.runs.progress.workload import Submitted
from shared.runs.progress.workloads import workload
from shared.runs.views.notes_and_tags import note_deed

log = logging.getLogger(__name__)


class Ports(HasClock, HasQueues, HasBlobs, HasFacts, HasJobs, HasTrainers, HasRuns, HasPurse, HasRendezvous, Protocol):
    """What is needed here from outside."""


def submit_run(ports: Ports, name: str) -> None:
    """Put the run's job to Azure ML under the run's name, or its members' jobs, or cancel it if that was asked for.

    `job` on its row is the sign that this was done; its state may be ahead of that, because an event came first. The
    event is queued before the step is written: one that is lost could never be made good, one that is sent twice has
    the same id.
    """
    run = ports.runs.recent(name).value
    if (
        run.progress.state is not RunState.RECEIVED or run.jobs.job
    ):  # else whoever asks for its end meets its submission anyway
        run = ports.runs.get(name).value
    if run.cancel.asked_at is not None:
        _cancel(ports, run)
        return
    if run.jobs.job:
        return
    if is_over(run):  # given up, while another submission, which then failed, put a job: nobody else knows of it
        if _has_jobs(ports.jobs, run):
            ports.happened(RunSubmitted(run))
        workload(run).cancel(ports, run)
        return
    try:
        bring_back(ports, run)
        run = ports.purse.priced(run)
        ports.purse.admit(run)
    except (BadInput, Conflict) as exc:
        give_up(ports, run, str(exc))
        return
    try:
        submitted = workload(run).submit(ports, run)
    except BadInput as exc:
        if _has_jobs(ports.jobs, run):  # some of its members were taken
            ports.happened(RunSubmitted(run))
        give_up(ports, run, f"The job could not be submitted. {exc}")
        return
    ports.happened(RunSubmitted(run))
    ids = submitted.ids
    facts: dict[str, Any] = {name: flat(run)[name] for name in PRICED}
    facts |= {"job": name, "code": ids.code_digest}
    facts["environment"] = ids.environment or str(run.asked.request.environment)
    after = transition(
        ports, name, RunState.SUBMITTED, "", lambda fresh: facts | _what_came_of_it(fresh, submitted, ports.clock())
    )
    if after.value.cancel.asked_at is not None or is_over(after.value):  # while the job was on its way
        _cancel(ports, after.value)


def _what_came_of_it(run: Run, submitted: Submitted, now: datetime) -> dict[str, Any]:
    """The changes of the run's row for the submitted jobs, also that they wait for nodes, if they do."""
    changes = workload(run).sent(run, submitted.jobs)
    step = advance(run, RunState.SUBMITTED, now)
    if step and submitted.queued:
        changes |= advance(run.changed(**step), RunState.QUEUED, now)
    return changes


def evict(ports: Ports, name: str, index: int, by: Person = NOBODY) -> str:
    """End the job of one member, as losing its node does, and return its name; see Workload.evict."""
    run = ports.runs.get(name).value
    job = workload(run).evict(ports, run, index)
    note_deed(ports, name, f"evicted member {index} ({job})", by)
    return job


def _cancel(ports: Ports, run: Run) -> None:
    """End the run's job. One that was never sent is canceled here; else the job's own end tells the run's.

    Also for a run that is over: its job may have been put a moment after it was canceled. Whoever put it may have died
    before saying so anywhere; hence the question to Azure ML.
    """
    how = workload(run)
    sent = bool(run.jobs.job) or _has_jobs(ports.jobs, run)
    if sent and not run.jobs.job:
        ports.happened(RunSubmitted(run))
    if run.progress.state is RunState.RECEIVED and not sent:
        transition(ports, run.name, RunState.CANCELED, run.cancel.why or "Canceled before its job was sent.")
    how.cancel(ports, run)


def _has_jobs(jobs: Jobs, run: Run) -> bool:
    return any(jobs.status(job) for job in workload(run).live_jobs(run))
