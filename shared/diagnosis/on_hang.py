"""Act on a hanging run as its route demands: tell, cancel, or retry.

The hang must last HELD, so that one wrong check ends nothing. If a run was itself started because the previous run
hung, it is only canceled, so restarts end.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from shared.diagnosis.causes import Cause
from shared.diagnosis.health import RunHealth
from shared.diagnosis.messages import RestartHung
from shared.jobs.route import Route
from shared.kernel.errors import Conflict, Impossible, NotFound, TrainyardError
from shared.kernel.person import Person
from shared.runs.codes import CancelCode
from shared.runs.facts import RunEnded
from shared.runs.intake.insert_run import name_with_route
from shared.runs.intake.retry_and_continue import continue_run, retry_run
from shared.runs.model import Run
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import cancel_run

log = logging.getLogger(__name__)
HELD = timedelta(minutes=5)
CANCELS = ("cancel", "retry")
WAITS, WAIT_SECONDS = 30, 20.0  # for the archive of the canceled run


def acted_on(route: Route | None, health: RunHealth, now: datetime) -> RunHealth:
    """Return the health with the hang for which the route ends the run now."""
    hang = next((each for each in health.ailments if each.cause == Cause.DEADLOCK), None)
    if route is None or route.on_hang not in CANCELS or hang is None or hang.since is None or now - hang.since < HELD:
        return health
    return replace(health, acted_on=hang.cause)


def end(ports: RunPorts, run: Run, health: RunHealth) -> None:
    """Cancel the run, with the hang as the reason."""
    hang = next(each for each in health.ailments if each.cause == health.acted_on)
    cancel_run(ports, run.name, f"{hang.summary} Its route {run.asked.route} ends such runs.", code=CancelCode.HANG)


def restart_if_hung(ports: RunPorts, fact: RunEnded) -> None:
    """Queue the restart of a run that was canceled because it hung, if its route demands a retry."""
    run, route = fact.run, ports.routes.get(fact.run.asked.route)
    if run.cancel.code is CancelCode.HANG and route is not None and route.on_hang == "retry":
        ports.queues.send(RestartHung(run.name), WAIT_SECONDS)


def restart(ports: RunPorts, message: RestartHung) -> None:
    """Continue the run from its last checkpoint, or start it again without one. A repeat creates no second run."""
    run = ports.runs.get(message.hung).value
    if _was_restarted(ports.runs, run):
        return
    try:
        made = _again(ports, run)
    except Conflict:  # the run is still being ended or archived
        if message.tries < WAITS:
            ports.queues.send(RestartHung(run.name, message.tries + 1), WAIT_SECONDS)
            return
        raise
    except TrainyardError as exc:
        log.warning("run %s hung and can't be started again: %s", run.name, exc)
        return
    log.info("run %s hung and was started again as %s", run.name, made.name)


def is_restarted(ports: RunPorts, message: RestartHung) -> bool:
    """Return whether another run was made from the hung run, or the hung run no longer exists."""
    try:
        route = ports.runs.get(message.hung).value.asked.route
        names = [name_with_route(ports.runs, why, route, message.hung) for why in ("continue", "retry")]
        return any(name in ports.runs.beginning_with(name, 1) for name in names)
    except NotFound:
        return True


def _again(ports: RunPorts, run: Run) -> Run:
    try:
        return continue_run(ports, run.name, None, run.people.owner, run.people.owner_id)
    except Impossible:  # without a checkpoint
        return retry_run(ports, run.name, by=Person(run.people.owner, run.people.owner_id))


def _was_restarted(runs: Runs, run: Run) -> bool:
    """Return whether the run was itself started because the previous run hung."""
    origin = run.asked.continues or run.asked.retry_of
    try:
        return bool(origin) and runs.get(origin).value.cancel.code is CancelCode.HANG
    except NotFound:
        return False
