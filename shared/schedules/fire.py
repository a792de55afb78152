"""Check a schedule: decide the due instants, and make the instants' runs.

Each schedule has its own next check, a delayed message; the reconcile timer sends another if the message is lost. A
check may run twice, or crash anywhere: an instant's row is written first and never decided again, and the run's name is
derived from the instant.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from shared.kernel.clock import Clock
from shared.kernel.errors import BadInput, Changed, Conflict, NotFound
from shared.kernel.parsing import convert
from shared.kernel.ports import StoragePorts
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.runs.codes import CancelCode
from shared.runs.decide import is_over
from shared.runs.find_run import find_run
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from shared.runs.names import asked_run_name
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import cancel_run
from shared.schedules.count import count
from shared.schedules.decide import DueFiring, due, enough_new, next_instants, order_of
from shared.schedules.facts import ScheduleFailed
from shared.schedules.messages import CheckSchedule
from shared.schedules.model import Firing, Outcome, Overlap, Schedule, firing_key
from shared.schedules.names import Meant, meant, with_meaning
from shared.schedules.ports import SchedulePorts, Schedules

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=60)  # a check that is overdue by less probably has its message on the way
LONG = timedelta(minutes=2)  # per check; the host ends the worker after functionTimeout, 10 minutes
COUNTED = ("counted", "arrived", "counted_until", "counted_for", "recounted_at")


def check_schedule(ports: SchedulePorts, message: CheckSchedule) -> None:
    """Decide the firings that are due since the last check, and queue the next check.

    A check that came too early is queued again. A check whose instant was decided meanwhile queues nothing, so that
    checks do not multiply.
    """
    schedules, name = ports.schedules, message.schedule
    stored = schedules.get(name)
    if stored is None or stored.value.paused:
        return
    if stored.value.new_files:
        _check_files(ports, schedules, stored)
        return
    schedule, now = stored.value, ports.clock()
    due_instants = due(schedule, now)
    for number, each in enumerate(due_instants, 1):
        firing = _decide(ports, schedules, schedule, each)
        if firing.outcome is Outcome.STARTED:
            schedule = replace(schedule, last_run=firing.run, drops_until=_drops_until(firing, schedule))
        if ports.clock() - now > LONG:  # the next check, which comes at once, continues
            due_instants = due_instants[:number]
            break
    until = due_instants[-1].at if due_instants else schedule.decided_until
    ahead = next_instants(schedule, until, 1)
    next_at = ahead[0] if ahead else None
    if due_instants or next_at != schedule.next_at:
        try:
            changes = {"last_run": schedule.last_run, "drops_until": schedule.drops_until}
            schedules.update(stored, decided_until=until, next_at=next_at, **changes)
        except Changed:
            return  # another check was faster, and queues the next one
    if next_at and (due_instants or next_at.isoformat() == message.meant):
        queue_check(ports.queues, ports.clock, name, next_at)


def queue_check(queues: Queues, clock: Clock, name: str, at: datetime | None) -> None:
    """Queue a check at this instant, or now."""
    delay = max((at - clock()).total_seconds(), 0.0) if at else 0.0
    queues.send(CheckSchedule(name, at.isoformat() if at else ""), delay)


def ask_for_overdue(queues: Queues, clock: Clock, schedules: Schedules) -> None:
    """Queue a check of each overdue schedule, and of each file-counting schedule."""
    now = clock()
    for schedule in schedules.all():
        overdue = schedule.next_at is not None and schedule.next_at < now - PATIENCE
        if not schedule.paused and (schedule.new_files or overdue):
            queue_check(queues, clock, schedule.id, schedule.next_at)


def _decide(ports: SchedulePorts, schedules: Schedules, schedule: Schedule, each: DueFiring) -> Firing:
    """Return the decision for one firing: the recorded decision, else a new decision."""
    why = each.skip or _overlap(ports.runs, schedule)
    firing = Firing(schedule.id, order_of(each.at), each.at, ports.clock(), Outcome.STARTED)
    return _carry_out(ports, schedules, schedule, _written(ports, schedules, schedule, firing, why))


def _written(ports: SchedulePorts, schedules: Schedules, schedule: Schedule, firing: Firing, why: str) -> Firing:
    """Return the recorded firing, with the current meaning of the names in the request."""
    try:
        names = Meant(why_not=why) if why else meant(ports, _request(schedule), since(schedule))
    except (BadInput, Conflict, NotFound, msgspec.ValidationError) as exc:
        firing = schedules.claim(replace(firing, outcome=Outcome.FAILED, why=str(exc)))
        return firing if firing.outcome is Outcome.STARTED else _failed(ports, schedules, schedule, firing)
    if names.why_not:
        return schedules.claim(replace(firing, outcome=Outcome.SKIPPED, why=names.why_not))
    run = asked_run_name("key", firing_key(firing.schedule, firing.order))
    facts = {**firing.facts, **({"meant": names.changes} if names.changes else {})}
    if names.drops_until:
        facts["drops_until"] = names.drops_until.isoformat()
    return schedules.claim(replace(firing, run=run, facts=facts))


def _request(schedule: Schedule) -> RunRequest:
    return convert(schedule.request, RunRequest)


def _drops_until(firing: Firing, schedule: Schedule) -> datetime | None:
    until = firing.facts.get("drops_until")
    return datetime.fromisoformat(until) if until else schedule.drops_until


def since(schedule: Schedule) -> datetime:
    """Return the moment after which a closed drop is new to the schedule."""
    return schedule.drops_until or schedule.created_at


def _failed(ports: StoragePorts, schedules: Schedules, schedule: Schedule, firing: Firing) -> Firing:
    """State that no run could be made. After a crash in between, the fact is stated again."""
    ports.happened(ScheduleFailed(schedule, firing))
    schedules.finish(firing)
    log.warning("schedule %s: %s failed: %s", schedule.id, firing.at, firing.why)
    return firing


def _overlap(runs: Runs, schedule: Schedule) -> str:
    """Return why the schedule's last run keeps this firing from starting; '' for a firing that may start."""
    if schedule.overlap is not Overlap.SKIP:
        return ""
    last = find_run(runs, schedule.last_run)
    if last is None or is_over(last):
        return ""
    return f"Run {last.name} of this schedule is {last.progress.state}. Overlap is skip."


def _carry_out(ports: RunPorts, schedules: Schedules, schedule: Schedule, firing: Firing) -> Firing:
    """Make the run of a firing with a run. A repeat finds the existing run."""
    if firing.outcome is not Outcome.STARTED:
        return firing
    try:
        if schedule.overlap is Overlap.REPLACE and schedule.last_run not in ("", firing.run):
            cancel_run(ports, schedule.last_run, code=CancelCode.SCHEDULE)
        request = with_meaning(_request(schedule), firing.facts.get("meant", {}))
        create_run(ports, request, firing_key(firing.schedule, firing.order), schedule.owner, schedule.owner_id)
    except (BadInput, Conflict, NotFound, msgspec.ValidationError) as exc:
        return _failed(ports, schedules, schedule, replace(firing, outcome=Outcome.FAILED, run="", why=str(exc)))
    return firing


def _check_files(ports: SchedulePorts, schedules: Schedules, stored: Stored[Schedule]) -> None:
    schedule = count(ports.drops, stored.value, ports.clock())
    if enough_new(schedule) and not _overlap(
        ports.runs, schedule
    ):  # otherwise the files are still new when that run ends
        changes = _fired(ports, schedules, schedule)
    elif schedule != stored.value:
        changes = {name: getattr(schedule, name) for name in COUNTED}
    else:
        return
    try:
        schedules.update(stored, **changes)
    except Changed:
        log.info("schedule %s: another check was quicker", schedule.id)


def _fired(ports: SchedulePorts, schedules: Schedules, schedule: Schedule) -> dict[str, Any]:
    """Make the run for enough new files. The claimed firing records the count, for a repeat after a crash."""
    number, now, until = schedule.number + 1, ports.clock(), schedule.counted_until or ports.clock()
    facts = {"new": schedule.arrived, "until": until.isoformat()}
    firing = Firing(schedule.id, number, now, now, Outcome.STARTED, facts=facts)
    firing = _carry_out(ports, schedules, schedule, _written(ports, schedules, schedule, firing, ""))
    until = datetime.fromisoformat(firing.facts.get("until", facts["until"]))
    last_run = firing.run or schedule.last_run
    files = schedule.counted + int(firing.facts.get("new", schedule.arrived))
    counted: dict[str, Any] = {"counted": files, "counted_for": files, "arrived": 0, "counted_until": until}
    return {
        **counted,
        "recounted_at": schedule.recounted_at,
        "number": number,
        "decided_until": now,
        "last_run": last_run,
        "drops_until": _drops_until(firing, schedule) if firing.run else schedule.drops_until,
    }
