"""Requests and answers about schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.api.answers import Reason
from shared.api.encode import model_of, plain_fields
from shared.runs.intake.request import RunRequest
from shared.schedules import model, plan
from shared.schedules.model import CatchUp, Overlap
from shared.schedules.ports import Schedules

Json = dict[str, Any]
_SKIPS = ("decided_until", "counted", "counted_until", "counted_for", "recounted_at", "number")


class ScheduleRequest(Struct, forbid_unknown_fields=True):
    """A run, and when it is made: at each instant of `cron`, or when `new_files` have come into a route's drops."""

    run: RunRequest
    cron: Annotated[str, Meta(max_length=200, description="Five fields: minute, hour, day, month, weekday.")] = ""
    timezone: Annotated[str, Meta(max_length=80, description="IANA's name, such as Europe/Berlin.")] = "UTC"
    route: Annotated[str, Meta(max_length=200, description="Whose drops' files are counted.")] = ""
    new_files: Annotated[float, Meta(ge=0, le=1e9, multiple_of=1)] = 0
    catch_up: Annotated[CatchUp, Meta(description="What becomes of instants that were missed.")] = CatchUp.LATEST
    overlap: Annotated[Overlap, Meta(description="What becomes of one whose last run has not ended.")] = Overlap.SKIP

    def wish(self, owner: str, owner_id: str) -> plan.Wish:
        return plan.Wish(
            self.run,
            self.cron,
            self.timezone,
            self.route,
            int(self.new_files),
            self.catch_up,
            self.overlap,
            owner,
            owner_id,
        )


class DryRunQuery(Struct):
    dry_run: Annotated[bool, Meta(description="Answer with the next instants and the job, and make nothing.")] = False


Schedule = model_of(__name__, model.Schedule, {}, _SKIPS)
Firing = model_of(__name__, model.Firing, {}, ("schedule", "order"))


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


class Removed(Struct):
    id: str


def schedule(record: model.Schedule) -> Json:
    nobody = {"paused_at": None, "paused_by": "", "paused_by_id": ""}
    return plain_fields(record, _SKIPS) | ({} if record.pauser_is_known else nobody)


def added(ports: plan.Ports, kept: Schedules, wish: plan.Wish) -> Json:
    """A new schedule, and what would keep its run from starting now."""
    made = plan.add(ports, kept, wish)
    return schedule(made) | {"reasons": plan.why_not_now(ports, wish.request)}


def schedules(ports: Schedules) -> list[Json]:
    return [schedule(each) for each in ports.all()]


def firings(ports: Schedules, name: str) -> list[Json]:
    """Of a schedule that is or was there. Raises NotFound."""
    firing_records = ports.firings(name)
    if not firing_records and ports.get(name) is None:
        raise plan.unknown(name)
    return [plain_fields(each, ("schedule", "order")) for each in firing_records]
