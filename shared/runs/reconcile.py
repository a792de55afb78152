"""Make true what events did not tell. Events are hints; this timer is why a lost one costs a period and no more.

What it can't see: files written over in a drop that is sealed, if every one of their events is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from shared.drops.collect import open_drop, send_check
from shared.drops.model import DropKey
from shared.kernel.errors import Changed, NotFound
from shared.kernel.storage import Place
from shared.runs.decide import is_over
from shared.runs.follow import follow_run
from shared.runs.model import RunState
from shared.system import DROPS_CONTAINER, SUBMISSIONS, System

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=60)  # a message sent within that time is probably on its way still


def reconcile(system: System) -> None:
    """Look after every run that isn't archived and every drop that isn't closed. One that fails stops no other.

    Raises the first error at the end, so that the timer's failure is seen.
    """
    errors: list[Exception] = []
    for name in system.runs.unsettled():
        _try(errors, f"run {name}", partial(_look_after_run, system, name))
    for drop in system.drops.open():
        _try(errors, f"drop {drop.key}", partial(send_check, system, drop, last=True))
    for route in sorted(system.routes):
        _try(errors, f"route {route}", partial(find_missed_drops, system, route))
    if errors:
        raise errors[0]


def _try(errors: list[Exception], what: str, step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as exc:  # noqa: BLE001  # whatever it is, the others come next, and it is raised at the end
        log.warning("reconcile: %s: %s", what, exc)
        errors.append(exc)


def _look_after_run(system: System, name: str) -> None:
    try:
        run = system.runs.get(name).value
    except NotFound:
        return  # its drop is still sealing, and finishes by its own check
    stuck = run.state is RunState.RECEIVED and system.clock() - run.created_at > PATIENCE
    if stuck or (run.cancel_asked_at is not None and not is_over(run)):
        system.queues.send(SUBMISSIONS, {"run": name})
    if run.archived_at is not None:
        system.runs.settle(name)
    else:
        follow_run(system, name)


def find_missed_drops(system: System, route: str) -> None:
    """Open the route's drops that no event told of, or that were rejected before the route existed.

    Lists names of folders only: the cost grows with the number of drops, not of their files.
    """
    known = system.drops.codes(route)
    for name in system.blobs.folders(Place(DROPS_CONTAINER, f"{route}/")):
        if known.get(name, "unknown_route") == "unknown_route":
            _open_missed(system, DropKey(route, name))


def _open_missed(system: System, key: DropKey) -> None:
    stored = system.drops.get(key)
    try:
        open_drop(system, stored, key, look_after=0.0)
    except Changed:
        log.info("drop %s: its event came after all", key)
