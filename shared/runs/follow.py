"""A run's way through Azure ML: submit its job, and follow what becomes of it."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

from shared.events.announce import announce
from shared.jobs import jobspec
from shared.jobs.assets import assets
from shared.jobs.model import JobStatus
from shared.kernel.errors import BadInput, Changed, NotFound
from shared.kernel.storage import Place
from shared.kernel.stored import Stored
from shared.runs import members
from shared.runs.decide import advance, failing_log, first_line, is_over, why_step
from shared.runs.model import Run, RunState, run_of_job
from shared.system import ARCHIVES, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10
LOGS_READ = 16  # at most so many ranks' logs are looked at for the reason of a failure
TAIL_BYTES = 4096
REASON_LINES = 15
REASON_LIMIT = 8000  # characters
MISSING_FOR = timedelta(days=1)  # a job that can't be found may be in a workspace that the settings don't name now


def submit_run(system: System, name: str) -> None:
    """Put the run's job to Azure ML under the run's name, or its members' jobs, or cancel it if that was asked for.

    A run past `received` is left alone otherwise.
    """
    run = system.runs.get(name)
    if run.value.cancel_asked_at is not None:
        _cancel(system, run.value)
        return
    if run.value.state is not RunState.RECEIVED:
        return
    try:
        ids = members.submit_members(system, run.value) if run.value.elastic else _submit_job(system, run.value)
    except BadInput as exc:
        _give_up(system, run.value, f"The job could not be submitted. {exc}")
        return
    facts = {"job": name, "code": ids["code_digest"], "environment": ids["environment"] or ""}
    facts["environment"] = facts["environment"] or str(run.value.request.get("environment", ""))
    after = _apply(system, name, RunState.SUBMITTED, "", facts)
    if after.value.cancel_asked_at is not None:  # while the job was on its way
        _cancel(system, after.value)
    announce(system, "RunSubmitted", name, {"run": name, "drop": run.value.drop, "cluster": run.value.cluster})


def _give_up(system: System, run: Run, why: str) -> None:
    """Fail a run whose job, or a member's, Azure ML doesn't take; other members may be on their way."""
    if run.elastic:
        members.cancel_members(system, run)
    _apply(system, run.name, RunState.FAILED, why)


def _submit_job(system: System, run: Run) -> dict[str, Any]:
    ids = assets(system, run.request)
    system.jobs.submit(jobspec.resolve(run.request, **ids))
    return ids


def _cancel(system: System, run: Run) -> None:
    """End the run's job. One that was never sent is canceled here; else the job's own end tells the run's.

    Also for a run that is over: its job may have been put a moment after it was canceled.
    """
    if run.state is RunState.RECEIVED:
        _apply(system, run.name, RunState.CANCELED, "Canceled before its job was sent.")
    if run.elastic is None:
        system.jobs.cancel(run.name)
    else:
        members.cancel_members(system, run)


def follow_run(system: System, name: str) -> None:
    """Make the run's row say what its job says now, or its members' jobs, of which any may be named.

    Names of other people's jobs do nothing. An event only tells when to look: the status is asked for, after the row's
    etag was read, so that of two looks at once the later one wins.
    """
    name = run_of_job(name)
    for _ in range(WRITE_ATTEMPTS):
        try:
            run = system.runs.get(name)
        except NotFound:
            return
        if is_over(run.value):
            _send_to_archive(system, run.value)
            return
        try:
            (_follow_members if run.value.elastic else _follow_job)(system, run)
        except Changed:
            continue
        return
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it was followed.")


def _follow_job(system: System, run: Stored[Run]) -> None:
    name = run.value.name
    status = system.jobs.status(name)
    if status is None and run.value.state is RunState.RECEIVED:
        return
    if status is None and system.clock() - run.value.history[-1].at < MISSING_FOR:
        log.warning("run %s: Azure ML has no such job; is the workspace the one it was sent to?", name)
        return
    status = status or JobStatus(name, RunState.FAILED, "", f"Azure ML has no job {name} any more.")
    _step(system, run, status.state, _reason(system, run.value, status))


def _follow_members(system: System, run: Stored[Run]) -> None:
    """Write down what the members are, then do what that asks for: a step that is lost in between comes again."""
    plan = members.look(system, run.value)
    why = plan.why
    if plan.state is RunState.FAILED and plan.failed_job:
        why = _with_log(system, plan.failed_job, why, why)
    facts = {"elastic": plan.elastic} if plan.elastic != run.value.elastic else {}
    after = _step(system, run, plan.state, why, facts)
    try:
        members.act(system, after, plan)
    except BadInput as exc:
        _give_up(system, after.value, f"A member's job could not be submitted. {exc}")


def _apply(system: System, name: str, state: RunState, why: str, facts: dict[str, Any] | None = None) -> Stored[Run]:
    """Take one step of our own, with further fields. If events were quicker, only the fields are written."""
    for _ in range(WRITE_ATTEMPTS):
        try:
            return _step(system, system.runs.get(name), state, why, facts)
        except Changed:
            continue
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it went to {state}.")


def _step(
    system: System, run: Stored[Run], state: RunState, why: str, facts: dict[str, Any] | None = None
) -> Stored[Run]:
    changes = advance(run.value, state, system.clock(), why) | (facts or {})
    after = system.runs.update(run, **changes) if changes else run
    if after.value.state is not run.value.state:
        log.info("run %s: %s -> %s %s", run.value.name, run.value.state, after.value.state, why.partition("\n")[0])
        _send_to_archive(system, after.value)
    return after


def _send_to_archive(system: System, run: Run) -> None:
    if is_over(run) and run.archived_at is None:
        system.queues.send(ARCHIVES, {"run": run.name})


def _reason(system: System, run: Run, status: JobStatus) -> str:
    """Why the run takes this step. For a failure: Azure ML's words and the end of the failing rank's log."""
    if status.state is not RunState.FAILED:
        return status.error or why_step(run, status)
    return _with_log(system, run.name, first_line(status.error) or "The job failed.", status.error)


def _with_log(system: System, job: str, words: str, error: str) -> str:
    file, tail = _failing_log(system, job, error)
    return f"{words}\n{file}:\n{tail}"[:REASON_LIMIT] if tail else words


def _failing_log(system: System, job: str, error: str) -> tuple[str, str]:
    """The name and the last lines of the log that explains the failure, of those that are there."""
    place = system.jobs.logs(job)
    named = re.search(r"user_logs/([\w.-]+\.txt)", error)
    names = [named.group(1)] if named else _log_names(system, place)
    tails = {n: system.blobs.tail(place.container, f"{place.prefix}user_logs/{n}", TAIL_BYTES) for n in names}
    return failing_log(tails, REASON_LINES)


def _log_names(system: System, place: Place) -> list[str]:
    logs = system.blobs.list(Place(place.container, f"{place.prefix}user_logs/"))
    return [blob.name.rpartition("/")[2] for blob, _ in zip(logs, range(LOGS_READ), strict=False)]
