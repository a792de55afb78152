"""A run's way through Azure ML: submit its job, and follow what becomes of it."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

from shared import jobspec, policy
from shared.errors import BadInput, Changed, NotFound
from shared.model import JobStatus, Run, RunState, Stored
from shared.ports import Place
from shared.service.announce import announce
from shared.system import ARCHIVES, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10
LOGS_READ = 16  # at most so many ranks' logs are looked at for the reason of a failure
TAIL_BYTES = 4096
REASON_LINES = 15
REASON_LIMIT = 8000  # characters
MISSING_FOR = timedelta(days=1)  # a job that can't be found may be in a workspace that the settings don't name now


def submit_run(system: System, name: str) -> None:
    """Put the run's job to Azure ML under the run's name, or cancel it if that was asked for.

    A run past `received` is left alone otherwise.
    """
    run = system.runs.get(name)
    if run.value.cancel_asked_at is not None:
        _cancel(system, run.value)
        return
    if run.value.state is not RunState.RECEIVED:
        return
    try:
        ids = assets(system, run.value.request)
        system.jobs.submit(jobspec.resolve(run.value.request, **ids))
    except BadInput as exc:
        _apply(system, name, RunState.FAILED, f"The job could not be submitted. {exc}")
        return
    facts = {"job": name, "code": ids["code_digest"], "environment": ids["environment"] or ""}
    facts["environment"] = facts["environment"] or str(run.value.request.get("environment", ""))
    after = _apply(system, name, RunState.SUBMITTED, "", facts)
    if after.value.cancel_asked_at is not None:  # while the job was on its way
        _cancel(system, after.value)
    announce(system, "RunSubmitted", name, {"run": name, "drop": run.value.drop, "cluster": run.value.cluster})


def _cancel(system: System, run: Run) -> None:
    """End the run's job. One that was never sent is canceled here; else the job's own end tells the run's.

    Also for a run that is over: its job may have been put a moment after it was canceled.
    """
    if run.state is RunState.RECEIVED:
        _apply(system, run.name, RunState.CANCELED, "Canceled before its job was sent.")
    system.jobs.cancel(run.name)


def assets(system: System, job: dict[str, Any], register: bool = True) -> dict[str, Any]:
    """The ids of the code and environment that this job needs, and the code's digest.

    They are registered if they are new, unless only their ids are asked for.
    """
    ids: dict[str, Any] = {"code": None, "environment": None, "code_digest": ""}
    if jobspec.uses_own_code(job):
        ids["code_digest"] = jobspec.digest_files(system.trainers)
        code = system.jobs.register_code if register else system.jobs.code_id
        ids["code"] = code(str(system.trainers), ids["code_digest"])
    if jobspec.uses_own_environment(job):
        environment = system.jobs.register_environment if register else system.jobs.environment_id
        file = str(system.trainers / "environment.yaml")
        ids["environment"] = environment(file, jobspec.digest_environment(system.trainers))
    return ids


def follow_run(system: System, name: str) -> None:
    """Make the run's row say what its job says now. Names of other people's jobs do nothing.

    An event only tells when to look: the status is asked for, after the row's etag was read, so that of two looks at
    once the later one wins.
    """
    for _ in range(WRITE_ATTEMPTS):
        try:
            run = system.runs.get(name)
        except NotFound:
            return
        if policy.is_over(run.value):
            _send_to_archive(system, run.value)
            return
        status = system.jobs.status(name)
        if status is None and run.value.state is RunState.RECEIVED:
            return
        if status is None and system.clock() - run.value.history[-1].at < MISSING_FOR:
            log.warning("run %s: Azure ML has no such job; is the workspace the one it was sent to?", name)
            return
        status = status or JobStatus(name, RunState.FAILED, "", f"Azure ML has no job {name} any more.")
        try:
            if _step(system, run, status.state, _reason(system, run.value, status)):
                return
        except Changed:
            continue
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it was followed.")


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
    changes = policy.advance(run.value, state, system.clock(), why) | (facts or {})
    after = system.runs.update(run, **changes) if changes else run
    if after.value.state is not run.value.state:
        log.info("run %s: %s -> %s %s", run.value.name, run.value.state, after.value.state, why.partition("\n")[0])
        _send_to_archive(system, after.value)
    return after


def _send_to_archive(system: System, run: Run) -> None:
    if policy.is_over(run) and run.archived_at is None:
        system.queues.send(ARCHIVES, {"run": run.name})


def _reason(system: System, run: Run, status: JobStatus) -> str:
    """Why the run takes this step. For a failure: Azure ML's words and the end of the failing rank's log."""
    if status.state is not RunState.FAILED:
        return status.error or policy.why_step(run, status)
    words = policy.first_line(status.error) or "The job failed."
    file, tail = _failing_log(system, run.name, status.error)
    return f"{words}\n{file}:\n{tail}"[:REASON_LIMIT] if tail else words


def _failing_log(system: System, job: str, error: str) -> tuple[str, str]:
    """The name and the last lines of the log that explains the failure, of those that are there."""
    place = system.jobs.logs(job)
    named = re.search(r"user_logs/([\w.-]+\.txt)", error)
    names = [named.group(1)] if named else _log_names(system, place)
    tails = {n: system.blobs.tail(place.container, f"{place.prefix}user_logs/{n}", TAIL_BYTES) for n in names}
    return policy.failing_log(tails, REASON_LINES)


def _log_names(system: System, place: Place) -> list[str]:
    logs = system.blobs.list(Place(place.container, f"{place.prefix}user_logs/"))
    return [blob.name.rpartition("/")[2] for blob, _ in zip(logs, range(LOGS_READ), strict=False)]
