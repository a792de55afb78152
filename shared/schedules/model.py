"""Schedules, their rules, and their firings.

An instant is decided once, forever: its row says that it started a run, was skipped (and why), or failed (and why). The
row is written before the run is made, and the run's name is derived from the instant, so a repeat makes the same run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class CatchUp(StrEnum):
    """The treatment of missed firings."""

    SKIP = "skip"  # none of them
    LATEST = "latest"  # only the last one
    ALL = "all"  # each of them, oldest first


class Overlap(StrEnum):
    """The treatment of a firing during the schedule's last run."""

    SKIP = "skip"
    ALLOW = "allow"
    REPLACE = "replace"  # the last run is canceled


@dataclass(frozen=True)
class Schedule:
    """A request for runs, made at each instant of `cron` in `timezone`, or for `new_files` in `route`.

    `decided_until` is the last decided instant, or when the schedule was made or resumed. `arrived` is the number of
    new files up to `counted_until` since the last of `number` firings for new files.

    An older version knows only `counted`, the number of files in the route's drops at that firing, and writes only
    `counted` when it fires. `arrived` is valid for `counted_for`; if `counted` differs or `counted_for` is unknown,
    files are counted anew. `recounted_at` is when all drops were last counted. An older version does not record
    closings, so only this count finds its files.
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
    owner_id: str = ""  # the owner's object id in Entra ID
    paused_at: datetime | None = None  # when the schedule was last paused or resumed
    paused_by: str = ""
    paused_by_id: str = ""
    arrived: int = 0
    counted_until: datetime | None = None
    counted_for: int | None = None
    recounted_at: datetime | None = None
    drops_until: datetime | None = None  # closing time of the newest drop that a run received through `@new`

    @property
    def pauser_is_known(self) -> bool:
        """Return whether `paused_by` made the current pause. An older version pauses and resumes without recording by
        whom.
        """
        return self.paused and self.paused_at is not None and self.decided_until <= self.paused_at


class Outcome(StrEnum):
    STARTED = "started"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Firing:
    """The outcome of an instant, or of the arrival of enough new files. `order` identifies and sorts a schedule's
    firings.
    """

    schedule: str
    order: int
    at: datetime
    decided_at: datetime
    outcome: Outcome
    run: str = ""
    why: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def firing_key(schedule: str, order: int) -> str:
    """Return the Idempotency-Key of this firing's run."""
    return f"schedule {schedule} {order}"
