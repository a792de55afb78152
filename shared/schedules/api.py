"""Requests and answers about schedules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.jobs.readers.variables import document_without_values
from shared.kernel.encode import model_of, plain_fields
from shared.kernel.person import Person
from shared.kernel.ports import StoragePorts
from shared.kernel.reply import Reply
from shared.runs.intake.request import RunRequest
from shared.runs.ports import Reason
from shared.schedules import model, plan
from shared.schedules.model import CatchUp, Overlap
from shared.schedules.ports import SchedulePorts, Schedules

Json = dict[str, Any]
ScheduleName = Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]
_SKIPS = ("decided_until", "counted", "counted_until", "counted_for", "recounted_at", "number")


class ScheduleRequest(Struct, forbid_unknown_fields=True):
    """A run, and when to make it: at each instant of `cron`, or when `new_files` have arrived in a route's drops."""

    run: RunRequest
    cron: Annotated[str, Meta(max_length=200, description="Five fields: minute, hour, day, month, weekday.")] = ""
    timezone: Annotated[str, Meta(max_length=80, description="IANA's name, such as Europe/Berlin.")] = "UTC"
    route: Annotated[str, Meta(max_length=200, description="Whose drops' files are counted.")] = ""
    new_files: Annotated[float, Meta(ge=0, le=1e9, multiple_of=1)] = 0
    catch_up: Annotated[CatchUp, Meta(description="What becomes of instants that were missed.")] = CatchUp.LATEST
    overlap: Annotated[Overlap, Meta(description="What becomes of one whose last run has not ended.")] = Overlap.SKIP

    def spec(self, owner: Person) -> plan.ScheduleSpec:
        return plan.ScheduleSpec(
            self.run,
            self.cron,
            self.timezone,
            self.route,
            int(self.new_files),
            self.catch_up,
            self.overlap,
            owner.name,
            owner.id,
        )


class DryRunQuery(Struct):
    dry_run: Annotated[bool, Meta(description="Answer with the next instants and the job, and make nothing.")] = False


ScheduleAnswer = model_of(__name__, model.Schedule, {}, _SKIPS)
FiringAnswer = model_of(__name__, model.Firing, {}, ("schedule", "order"))


class Preview(Struct):
    next: Annotated[list[datetime], Meta(description="The next five instants, in UTC.")]
    job: dict[str, Any]
    reasons: list[Reason]


Added = model_of(
    __name__,
    model.Schedule,
    {
        "reasons": Annotated[
            list[Reason], Meta(description="Why a run could not start now, such as data that are not there.")
        ]
    },
    _SKIPS,
    "AddedSchedule",
)


class RemovedSchedule(Struct):
    id: str


def list_schedules(schedules: Schedules) -> Annotated[list[Json], list[ScheduleAnswer]]:
    return [schedule_fields(each) for each in schedules.all()]


def add_schedule(
    ports: SchedulePorts,
    schedules: Schedules,
    query: DryRunQuery,
    body: ScheduleRequest,
    key: str | None,
    by: Person,
    admit_code: Callable[[], None],
) -> Annotated[Reply, {200: Preview, 201: Added}]:
    """Add a schedule. The answer names obstacles to starting the schedule's run now."""
    if body.run.job is not None:  # a job's command is code
        admit_code()
    spec = body.spec(by)
    if query.dry_run:
        return Reply(plan.preview(ports, spec))
    made = plan.add(ports, schedules, spec, key)
    reasons = plan.why_not_now(ports, spec.request)
    return Reply(schedule_fields(made) | {"reasons": reasons}, 201, {"Location": f"/api/schedules/{made.id}"})


def remove_schedule(schedules: Schedules, schedule: ScheduleName) -> Annotated[Json, RemovedSchedule]:
    plan.remove(schedules, schedule)
    return {"id": schedule}


def pause_schedule(
    ports: StoragePorts, schedules: Schedules, schedule: ScheduleName, by: Person
) -> Annotated[Json, ScheduleAnswer]:
    return schedule_fields(plan.pause(ports, schedules, schedule, True, by))


def resume_schedule(
    ports: StoragePorts, schedules: Schedules, schedule: ScheduleName, by: Person
) -> Annotated[Json, ScheduleAnswer]:
    return schedule_fields(plan.pause(ports, schedules, schedule, False, by))


def list_firings(schedules: Schedules, schedule: ScheduleName) -> Annotated[list[Json], list[FiringAnswer]]:
    """Return the firings of an existing or deleted schedule. Raises NotFound."""
    firing_records = schedules.firings(schedule)
    if not firing_records and schedules.get(schedule) is None:
        raise plan.unknown(schedule)
    return [plain_fields(each, ("schedule", "order")) for each in firing_records]


def schedule_fields(record: model.Schedule) -> Json:
    nobody = {"paused_at": None, "paused_by": "", "paused_by_id": ""}
    request = {"request": document_without_values(record.request)}
    return plain_fields(record, _SKIPS) | request | ({} if record.pauser_is_known else nobody)
