"""Put a run to Azure ML, or end it."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.jobs.job import environment_words
from shared.kernel.errors import BadInput, Changed, Conflict
from shared.kernel.person import NOBODY, Person
from shared.kernel.versioned import Stored
from shared.runs.decide import advance, is_over
from shared.runs.facts import RunSubmitted
from shared.runs.intake.warm_start import bring_back
from shared.runs.model import Run, RunState
from shared.runs.ports import PRICED
from shared.runs.progress.transitions import WRITE_ATTEMPTS, apply, ask_for_submission
from shared.runs.progress.workload import Submitted
from shared.runs.progress.workloads import workload
from shared.runs.views.notes_and_tags import note_deed
from shared.system import System

log = logging.getLogger(__name__)


def submit_run(system: System, name: str) -> None:
    """Put the run's job to Azure ML under the run's name, or its members' jobs, or cancel it if that was asked for.

    `job` on its row is the sign that this was done; its state may be ahead of that, because an event came first. The
    event is queued before the step is written: one that is lost could never be made good, one that is sent twice has
    the same id.
    """
    run = system.runs.recent(name).value
    if run.state is not RunState.RECEIVED or run.job:  # else whoever asks for its end meets its submission anyway
        run = system.runs.get(name).value
    if run.cancel_asked_at is not None:
        _cancel(system, run)
        return
    if run.job:
        return
    if is_over(run):  # given up, while another submission, which then failed, put a job: nobody else knows of it
        if _has_jobs(system, run):
            tell_submitted(system, run)
        workload(run).cancel(system, run)
        return
    try:
        bring_back(system, run)
        run = system.purse.priced(run)
        system.purse.admit(run)
    except (BadInput, Conflict) as exc:
        give_up(system, run, str(exc))
        return
    try:
        submitted = workload(run).submit(system, run)
    except BadInput as exc:
        if _has_jobs(system, run):  # some of its members were taken
            tell_submitted(system, run)
        give_up(system, run, f"The job could not be submitted. {exc}")
        return
    tell_submitted(system, run)
    ids = submitted.ids
    facts: dict[str, Any] = {field: getattr(run, field) for field in PRICED}
    facts |= {"job": name, "code": ids.code_digest}
    facts["environment"] = ids.environment or environment_words(run.request)
    after = apply(
        system, name, RunState.SUBMITTED, "", lambda fresh: facts | _what_came_of_it(fresh, submitted, system.clock())
    )
    if after.value.cancel_asked_at is not None or is_over(after.value):  # while the job was on its way
        _cancel(system, after.value)


def _what_came_of_it(run: Run, submitted: Submitted, now: datetime) -> dict[str, Any]:
    """What the run's row says of its jobs. If they wait for nodes it is the next step already, in the same write."""
    changes = workload(run).sent(run, submitted.jobs)
    step = advance(run, RunState.SUBMITTED, now)
    if step and submitted.queued:
        changes |= advance(replace(run, **step), RunState.QUEUED, now)
    return changes


def tell_submitted(system: System, run: Run) -> None:
    """For whoever sees first that the run has a job."""
    system.happened(RunSubmitted(run))


def give_up(system: System, run: Run, why: str) -> None:
    """Fail a run whose job, or a member's, Azure ML doesn't take; other members may be on their way.

    They are ended before the state is written, because who repeats this call stops at a run that is over; and after it,
    because a submission that is under way may have put jobs in between. One that comes later sees the state.
    """
    workload(run).cancel(system, run)
    after = apply(system, run.name, RunState.FAILED, why).value
    workload(after).cancel(system, after)


def cancel_run(system: System, name: str, why: str = "", by: Person = NOBODY) -> Run:
    """Write down that the run is to end, and queue its cancellation. A final run is left as it is; so is a second call.

    `why` becomes the run's reason where the system asks, and not a person.

    The mark makes it stick: a submission that is under way sees it afterwards, and the reconcile timer repeats it.
    """
    for _ in range(WRITE_ATTEMPTS):
        stored = system.runs.get(name)
        if is_over(stored.value):
            return stored.value
        try:
            if stored.value.cancel_asked_at is None:
                stored = _asked_to_end(system, stored, why, by)
        except Changed:
            continue
        ask_for_submission(system.queues, name)
        return stored.value
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it was canceled.")


def _asked_to_end(system: System, stored: Stored[Run], why: str, by: Person) -> Stored[Run]:
    return system.runs.update(
        stored, cancel_asked_at=system.clock(), cancel_why=why, canceled_by=by.name, canceled_by_id=by.id
    )


def evict(system: System, name: str, index: int, by: Person = NOBODY) -> str:
    """End the job of one member, as losing its node does, and return its name; see Workload.evict."""
    run = system.runs.get(name).value
    job = workload(run).evict(system, run, index)
    note_deed(system, name, f"evicted member {index} ({job})", by)
    return job


def _cancel(system: System, run: Run) -> None:
    """End the run's job. One that was never sent is canceled here; else the job's own end tells the run's.

    Also for a run that is over: its job may have been put a moment after it was canceled. Whoever put it may have died
    before saying so anywhere; hence the question to Azure ML.
    """
    how = workload(run)
    sent = bool(run.job) or _has_jobs(system, run)
    if sent and not run.job:
        tell_submitted(system, run)
    if run.state is RunState.RECEIVED and not sent:
        apply(system, run.name, RunState.CANCELED, run.cancel_why or "Canceled before its job was sent.")
    how.cancel(system, run)


def _has_jobs(system: System, run: Run) -> bool:
    return any(system.jobs.status(job) for job in workload(run).live_jobs(run))
