"""Schedules, their rules, and their firings.

An instant is decided once, for ever: its row says that it started a run, was skipped and why, or failed and why. The
row is written before the run is made, and the run's name comes from the instant, so whoever repeats it makes the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class CatchUp(StrEnum):
    """What to do with firings that were missed."""

    SKIP = "skip"  # none of them
    LATEST = "latest"  # the last one only
    ALL = "all"  # each of them, oldest first


class Overlap(StrEnum):
    """What to do with a firing while the schedule's last run goes on."""

    SKIP = "skip"
    ALLOW = "allow"
    REPLACE = "replace"  # the last run is canceled


@dataclass(frozen=True)
class Schedule:
    """A request for runs, and when it is made: at each instant of `cron` in `timezone`, or for `new_files` in `route`.

    `decided_until` is the last instant that was decided, or when the schedule was made or resumed. `arrived` are
    the new files up to `counted_until` since the last firing for new files, of which there were `number`.

    `counted`, the files of the route's drops at that firing, is what a version before these knows, and writes alone
    when it fires: `arrived` holds for `counted_for`, and is counted anew where that is another number, or unknown.
    `recounted_at` is when all drops were counted: closings by such a version leave nothing else to count.
    """

    id: str
    request: dict[str, Any]
    created_at: datetime
    decided_until: datetime
    cron: str = ""
    timezone: str = "UTC"
    route: str = ""
    new_files: int = 0
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.SKIP
    paused: bool = False
    owner: str = ""
    next_at: datetime | None = None
    last_run: str = ""
    counted: int = 0
    number: int = 0
    owner_id: str = ""  # their object id in Entra ID
    paused_at: datetime | None = None  # when it was paused or resumed last, and by whom
    paused_by: str = ""
    paused_by_id: str = ""
    arrived: int = 0
    counted_until: datetime | None = None
    counted_for: int | None = None
    recounted_at: datetime | None = None
    drops_until: datetime | None = None  # when the newest drop closed that a run was told of, by `@new`

    @property
    def pauser_is_known(self) -> bool:
        """Whether `paused_by` made the pause that is on: a version before it resumes, and pauses, without a word."""
        return self.paused and self.paused_at is not None and self.decided_until <= self.paused_at


class Outcome(StrEnum):
    STARTED = "started"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Firing:
    """The outcome of an instant, or of enough new files. `order` identifies and sorts a schedule's firings."""

    schedule: str
    order: int
    at: datetime
    decided_at: datetime
    outcome: Outcome
    run: str = ""
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def firing_key(schedule: str, order: int) -> str:
    """The Idempotency-Key of the run that this firing makes."""
    return f"schedule {schedule} {order}"
