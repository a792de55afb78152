"""Record a run once, even after repeated requests, and queue the submission."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from shared.kernel.errors import Conflict
from shared.runs.facts import RunRecorded
from shared.runs.find_run import find_run
from shared.runs.model import Run, RunState
from shared.runs.names import asked_run_name
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.transitions import ask_for_submission

log = logging.getLogger(__name__)

SENT_BY_THEN = timedelta(seconds=5)  # a healthy call queues the submission milliseconds after recording the run


def run_name(new_token: Callable[[], str], key: str | None) -> str:
    return asked_run_name("key", key) if key else asked_run_name("token", new_token())


def name_with_route(runs: Runs, kind: str, route: str, what: str) -> str:
    """The name of a run made from another run or a drop.

    Older versions left the route out of the name; an existing run keeps such a name.
    """
    before, now = asked_run_name(kind, what), asked_run_name(kind, what, route)
    return before if before != now and before in runs.beginning_with(before, 1) else now


def made_before(ports: RunPorts, name: str, asked: str) -> Run | None:
    """The run of this name, or None. The submission is queued again if the first call seems to have crashed.

    Raises Conflict if the run was made by another request.
    """
    run = find_run(ports.runs, name)
    if run is None:
        return None
    if run.asked.digest != asked:
        raise Conflict(
            f"This Idempotency-Key was used for run {name} by another request. Use a new key.", "idempotency_conflict"
        )
    if run.progress.state is RunState.RECEIVED and ports.clock() - run.created_at > SENT_BY_THEN:
        ask_for_submission(ports.queues, run)
    return run


def record(ports: RunPorts, run: Run) -> Run:
    """Record the run and queue the submission, or return the existing run with this name and request.

    Raises Conflict if the project's budget is too small.
    """
    run = ports.admission.priced(run)
    try:
        ports.admission.admit(run)
    except Conflict:
        if made := made_before(ports, run.name, run.asked.digest):
            return made
        raise
    return _insert(ports, run) or made_before(ports, run.name, run.asked.digest) or run


def _insert(ports: RunPorts, run: Run) -> Run | None:
    """Record the run and queue the submission; None for an existing name."""
    if not ports.runs.insert(run):
        return None
    ports.happened(RunRecorded(run))
    log.info("run %s: received, for cluster %s", run.name, run.asked.cluster)
    return run
