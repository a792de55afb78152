"""What follows an upload, in one invocation if it can be: the look at the drop, and the submission of its run.

Their queues catch what is not done at once; drops.py and jobs.py have their triggers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from functions import telemetry
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system
from shared.kernel import places
from shared.kernel.drop_key import DropKey

with on_demand():
    from shared.drops import collect
    from shared.events import incoming
    from shared.kernel import at_once
    from shared.runs.progress import submit

if TYPE_CHECKING:
    from shared.system import System

AT_ONCE = (places.DROP_CHECKS, places.SUBMISSIONS)


def going_on() -> AbstractContextManager[System]:
    """The system for a handler: what it sends to AT_ONCE without delay is done right after it."""
    return at_once.at_once(the_system(), AT_ONCE, handle)


def handle(system: System, queue: str, message: dict[str, Any]) -> None:
    (look_at_drop if queue == places.DROP_CHECKS else submit_run)(system, message)


def look_at_drop(system: System, check: dict[str, Any]) -> None:
    key = DropKey(incoming.text(check, "route"), incoming.text(check, "name"))
    with telemetry.span("look at drop", drop=str(key)):
        collect.check_drop(system, key, incoming.text(check, "token"), bool(check.get("last")), check.get("so_far"))


def submit_run(system: System, message: dict[str, Any]) -> None:
    run = incoming.text(message, "run")
    with telemetry.submission(system, run):
        submit.submit_run(system, run)
