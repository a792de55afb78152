"""Schedules on request: add, preview, pause, resume, remove."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from shared.drops.ports import DropPorts
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.kernel.idempotency import id_for, used_for_another
from shared.kernel.person import NOBODY, Person
from shared.kernel.ports import StoragePorts
from shared.kernel.suggest import did_you_mean
from shared.kernel.versioned import Stored
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest, as_given
from shared.runs.ports import Reason
from shared.schedules.count import files_in, from_here
from shared.schedules.decide import next_instants
from shared.schedules.fire import queue_check
from shared.schedules.model import CatchUp, Overlap, Schedule
from shared.schedules.names import Meant, meant, with_meaning
from shared.schedules.ports import SchedulePorts, Schedules

SHOWN = 5  # next instants in a preview


@dataclass(frozen=True)
class ScheduleSpec:
    """A requested schedule: a run, and either a calendar or a number of new files in a route."""

    request: RunRequest
    cron: str = ""
    timezone: str = "UTC"
    route: str = ""
    new_files: int = 0
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.SKIP
    owner: str = field(default="")
    owner_id: str = ""


def preview(ports: SchedulePorts, spec: ScheduleSpec) -> dict[str, Any]:
    """Return the schedule's next instants, and the job that the schedule would send now. Creates nothing."""
    schedule = _made(ports, spec)
    instants_ahead = next_instants(schedule, ports.clock(), SHOWN)
    return {"next": [at.isoformat() for at in instants_ahead], **_tried(ports, spec.request)}


def add(ports: SchedulePorts, schedules: Schedules, spec: ScheduleSpec, key: str | None = None) -> Schedule:
    """Store a schedule. A repeated key returns the existing schedule.

    Raises Impossible if its request can never start a run, Conflict if the key was used for a different request.
    """
    name = id_for("s", key, ports.new_token)
    if key and (stored := schedules.get(name)):
        return _same(stored.value, spec)
    schedule = replace(_made(ports, spec), id=name)
    _tried(ports, spec.request)
    try:
        schedules.add(schedule)
    except Changed:
        if not (key and (stored := schedules.get(name))):
            raise
        return _same(stored.value, spec)
    if schedule.next_at:
        queue_check(ports.queues, ports.clock, schedule.id, schedule.next_at)
    return schedule


def _same(schedule: Schedule, spec: ScheduleSpec) -> Schedule:
    """Return an existing schedule made from this spec. Raises Conflict."""
    asked = (as_given(spec.request), spec.cron, spec.timezone, spec.route, spec.new_files, spec.catch_up, spec.overlap)
    made = (schedule.request, schedule.cron, schedule.timezone, schedule.route, schedule.new_files, schedule.catch_up)
    if (*made, schedule.overlap) != asked or (schedule.owner, schedule.owner_id) != (spec.owner, spec.owner_id):
        raise used_for_another(f"schedule {schedule.id}")
    return schedule


def why_not_now(ports: SchedulePorts, request: RunRequest) -> list[Reason]:
    """Return the obstacles to starting a run of this request now, for example missing data."""
    reasons: list[Reason] = _tried(ports, request)["reasons"]
    return reasons


def _tried(ports: SchedulePorts, request: RunRequest) -> dict[str, Any]:
    """Return the dry run of the request with its names' current meaning; every closed drop counts as new."""
    try:
        names = meant(ports, request, None)
    except NotFound as exc:
        names = Meant(why_not=str(exc))
    if names.why_not:
        return {"job": {}, "reasons": [Reason(code="no_data", message=names.why_not)]}
    return dry_run(ports, with_meaning(request, names.changes))


def pause(ports: StoragePorts, schedules: Schedules, name: str, paused: bool, by: Person = NOBODY) -> Schedule:
    """Pause or resume a schedule. Firings missed while paused are skipped."""

    def write(stored: Stored[Schedule] | None) -> Schedule:
        if stored is None:
            raise unknown(name)
        now, before = ports.clock(), stored.value
        if before.paused is paused:
            return before
        changes: dict[str, Any] = {"paused": paused, "next_at": None}
        changes |= {"paused_at": now, "paused_by": by.name, "paused_by_id": by.id}
        if not paused:
            changes |= {"paused_at": None, "paused_by": "", "paused_by_id": ""}
            changes |= {"decided_until": now, "next_at": _first(before, now)}
        after = schedules.update(stored, **changes).value
        if after.next_at:
            queue_check(ports.queues, ports.clock, name, after.next_at)
        return after

    return compare_and_set(ports.clock, f"Schedule {name}", lambda: schedules.get(name), write)


def remove(schedules: Schedules, name: str) -> None:
    """Delete the schedule. Its runs continue."""
    if not schedules.remove(name):
        raise unknown(name)


def _made(ports: DropPorts, spec: ScheduleSpec) -> Schedule:
    """Return the schedule described by the spec, without an id. Raises Impossible."""
    if bool(spec.cron) == bool(spec.new_files):
        raise Impossible("Give either cron or new_files: when is it to run?", "bad_schedule")
    if spec.new_files and spec.route not in ports.routes:
        route_names = ", ".join(sorted(ports.routes))
        near = did_you_mean(spec.route, ports.routes)
        raise Impossible(
            f"There is no route {spec.route[:80]!r} to count files in.{near} Routes: {route_names}.", "unknown_route"
        )
    now = ports.clock()
    schedule = Schedule(
        id="",
        request=as_given(spec.request),
        created_at=now,
        decided_until=now,
        cron=spec.cron,
        timezone=spec.timezone,
        route=spec.route,
        new_files=spec.new_files,
        catch_up=spec.catch_up,
        overlap=spec.overlap,
        owner=spec.owner,
        owner_id=spec.owner_id,
    )
    if spec.new_files:
        schedule = from_here(schedule, files_in(ports.drops, spec.route), now)
    first = _first(schedule, now)
    if schedule.cron and first is None:
        raise Impossible(f"cron is {spec.cron[:80]!r}, which no day ever matches.", "bad_cron")
    return replace(schedule, next_at=first)


def _first(schedule: Schedule, now: datetime) -> datetime | None:
    return next(iter(next_instants(schedule, now, 1)), None)


def unknown(name: str) -> NotFound:
    """Return the error for a missing schedule."""
    return NotFound(f"There is no schedule {name[:80]!r}; `schedule list` shows the existing ones.")
