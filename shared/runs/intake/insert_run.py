"""Record a run once, however often it is asked for, and queue its submission."""

from __future__ import annotations

import logging
from datetime import timedelta

from shared.kernel.errors import Conflict, NotFound
from shared.runs.facts import RunRecorded
from shared.runs.model import Run, RunState
from shared.runs.names import asked_run_name
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.transitions import ask_for_submission

log = logging.getLogger(__name__)

SENT_BY_THEN = timedelta(seconds=5)  # a call that lives sends the run off milliseconds after it recorded it


def run_name(ports: RunPorts, key: str | None) -> str:
    return asked_run_name("key", key) if key else asked_run_name("token", ports.new_token())


def name_with_route(runs: Runs, kind: str, route: str, what: str) -> str:
    """The name of a run that is made from another, or of a drop. An older version's had no route: such a one stays."""
    before, now = asked_run_name(kind, what), asked_run_name(kind, what, route)
    return before if before != now and before in runs.beginning_with(before, 1) else now


def made_before(ports: RunPorts, name: str, asked: str) -> Run | None:
    """The run of this name, or None. Its submission is queued again if the call that made it seems to have died."""
    try:
        run = ports.runs.get(name).value
    except NotFound:
        return None
    if run.asked.digest != asked:
        raise Conflict(
            f"This Idempotency-Key made run {name} from another request. Use a new key.", "idempotency_conflict"
        )
    if run.progress.state is RunState.RECEIVED and ports.clock() - run.created_at > SENT_BY_THEN:
        ask_for_submission(ports.queues, run)
    return run


def record(ports: RunPorts, run: Run) -> Run:
    """Record the run and send it off, or give the one that was recorded under its name for the same request.

    Raises Conflict if its project's budget does not allow it.
    """
    run = ports.purse.priced(run)
    try:
        ports.purse.admit(run)
    except Conflict:
        if made := made_before(ports, run.name, run.asked.digest):
            return made
        raise
    return _insert(ports, run) or made_before(ports, run.name, run.asked.digest) or run


def _insert(ports: RunPorts, run: Run) -> Run | None:
    """Record the run and queue its submission; None if its name was taken."""
    if not ports.runs.insert(run):
        return None
    ports.happened(RunRecorded(run))
    log.info("run %s: received, for cluster %s", run.name, run.asked.cluster)
    return run
