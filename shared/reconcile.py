"""Repair what lost events missed. Events are hints; because of this timer a lost one costs one period at most.

It only queues checks, so it takes seconds however many there are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from shared import settled
from shared.drops.checks import send_check
from shared.drops.find_unannounced import find_missed_drops, routes_with_folders
from shared.drops.model import DropState
from shared.events.poison import look_at_poison, poisoned
from shared.events.ports import HasAudience, HasEvents
from shared.jobs.register import register_assets
from shared.kernel import measure
from shared.kernel.errors import Unavailable
from shared.removals.ports import HasNamed
from shared.runs.progress.hourly_reconcile import ask_for_looks
from shared.schedules.fire import Ports as FirePorts
from shared.schedules.fire import ask_for_overdue
from shared.schedules.ports import Schedules

log = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=5)  # then the next time begins; half of functionTimeout, which would end the worker


class Ports(FirePorts, HasEvents, HasAudience, HasNamed, Protocol):
    """What is needed here from outside."""


def reconcile(ports: Ports, schedules: Schedules | None = None) -> None:
    """Ask for a look at every run that isn't settled and every drop that isn't closed, and find drops without events.

    It also registers what every job needs, so that a new deployment is ready before its first job. One part that fails
    stops no other, and a workspace on another storage account is such a failure. Raises the first
    error at the end, so that the timer's failure is seen.
    """
    errors: list[Exception] = []
    until = ports.clock() + PATIENCE
    _try(errors, "workspace", ports.jobs.check)
    _try(errors, "assets", partial(register_assets, ports.jobs, ports.trainers))
    _try(errors, "runs", partial(ask_for_looks, ports))
    aside = list[str]()
    _try(errors, "poison queues", lambda: aside.extend(poisoned(ports)))
    _try(errors, "settled poison", partial(settled.clear, ports, aside))
    _try(errors, "poison", partial(look_at_poison, ports, aside))
    if schedules:
        _try(errors, "schedules", partial(ask_for_overdue, ports, schedules))
    walks = dict[str, str]()
    _try(errors, "routes", lambda: walks.update(routes_with_folders(ports, ports.routes)))
    for route, begin in walks.items():
        _try(errors, f"route {route}", partial(find_missed_drops, ports, route, begin))
    _try(errors, "drops", partial(_check_open_drops, ports, until))
    if errors:
        raise errors[0]


def _check_open_drops(ports: Ports, until: datetime) -> None:
    still_open = 0
    for drop in ports.drops.open():
        still_open += 1
        if ports.clock() > until:
            raise Unavailable(f"open drops took longer than {PATIENCE}; the rest come with their own looks")
        if drop.state is not DropState.BROKEN:
            send_check(ports.queues, drop, last=True)
    measure.level("drops.open", still_open)


def _try(errors: list[Exception], what: str, step: Callable[[], object]) -> None:
    try:
        step()
    except Exception as exc:  # noqa: BLE001  # whatever it is, the others come next, and it is raised at the end
        log.warning("reconcile: %s: %s", what, exc)
        errors.append(exc)
