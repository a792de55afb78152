"""Reactions of runs with a deadline to facts about runs."""

from __future__ import annotations

from datetime import timedelta

from shared.deadlines.facts import RunWillBeLate
from shared.deadlines.messages import CheckPace
from shared.deadlines.model import Date
from shared.events.announce import queue_notice
from shared.events.ports import EventPorts
from shared.kernel.ports import StoragePorts
from shared.runs import facts as runs

PACE_PATIENCE = timedelta(minutes=11)  # more than twice the longest time between two checks of a run with a deadline


def begin_pace(ports: StoragePorts, fact: runs.RunRecorded) -> None:
    """Queue the first check of a run with a deadline; each check queues the next."""
    if fact.run.feature(Date):
        ports.queues.send(CheckPace(fact.run.name, ""))


def queue_pace_check(ports: StoragePorts, fact: runs.RunStarted | runs.RunLosesNodes) -> None:
    """Queue an early check, because nodes joined or were lost. The fact is published before the row records it."""
    if fact.run.feature(Date):
        ports.queues.send(CheckPace(fact.run.name), 1.0)


def restart_pace_checks(ports: StoragePorts, fact: runs.RunReconciled) -> None:
    """Restart a lost chain of checks."""
    run, date = fact.run, fact.run.feature(Date)
    if date and run.jobs.job and ports.clock() - (date.pace.paced_at or run.created_at) > PACE_PATIENCE:
        ports.queues.send(CheckPace(run.name, date.pace.next_look))


def announce_lateness(ports: EventPorts, fact: RunWillBeLate) -> None:
    data = {"run": fact.run.name, "done at": fact.done_at.isoformat(), "why": fact.why}
    queue_notice(ports, "RunWillBeLate", fact.run.name, data)
