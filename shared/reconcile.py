"""Repair the effects of lost events. Events are hints: with this timer, a lost event costs one period, and a drop
without any event costs three.

The timer only queues checks, so it takes seconds, no matter how many there are.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from shared.clusters.ports import ClusterPorts
from shared.clusters.stray_jobs import end_stray_jobs
from shared.drops.checks import send_check
from shared.drops.find_unannounced import walks
from shared.drops.model import DropState
from shared.drops.ports import DropPorts
from shared.jobs.register import register_assets
from shared.kernel import measure
from shared.kernel.attempts import Attempts
from shared.kernel.errors import Unavailable
from shared.messages import old_queues, poison
from shared.runs.progress.hourly_reconcile import queue_hourly_checks
from shared.schedules.fire import ask_for_overdue
from shared.schedules.ports import Schedules

PATIENCE = timedelta(
    minutes=5
)  # half of functionTimeout, at which the host ends the worker; the next period checks the rest


def reconcile(ports: ClusterPorts, schedules: Schedules | None = None) -> None:
    """Queue a check of every unfinished run and every open drop, and find drops whose events were lost.

    The timer also registers the assets that every job needs, so that a new deployment is ready before its first job. A
    part that fails does not stop the others; a workspace on another storage account is such a failure. Raises the first
    error at the end, so that the timer's execution counts as failed.
    """
    steps = Attempts("reconcile")
    until = ports.clock() + PATIENCE
    steps.do("workspace", ports.jobs.check)
    steps.do("assets", partial(register_assets, ports.jobs, ports.trainers))
    steps.do("runs", partial(queue_hourly_checks, ports.runs, ports.queues))
    steps.do("stray jobs", partial(end_stray_jobs, ports))
    steps.do("old queues", partial(old_queues.move_messages, ports.queues, ports.memory))
    poisoned = list[str]()
    steps.do("poison queues", lambda: poisoned.extend(poison.poisoned(ports.queues, ports.memory)))
    steps.do("poison that is done", partial(poison.clear, ports, poisoned))
    steps.do("poison", partial(poison.state_poison, ports, poisoned))
    if schedules:
        steps.do("schedules", partial(ask_for_overdue, ports.queues, ports.clock, schedules))
    routes = list[str]()
    steps.do("routes", lambda: routes.extend(walks(ports.memory).due(ports)))
    for route in routes:
        steps.do(f"route {route}", partial(walks(ports.memory).find_missed_drops, ports, route))
    steps.do("drops", partial(_check_open_drops, ports, until))
    steps.end()


def _check_open_drops(ports: DropPorts, until: datetime) -> None:
    still_open = 0
    for drop in ports.drops.open():
        still_open += 1
        if ports.clock() > until:
            raise Unavailable(f"open drops took longer than {PATIENCE}; the rest follow with their own checks")
        if drop.state is not DropState.BROKEN:
            send_check(ports.queues, drop, last=True)
    measure.level("drops.open", still_open)
