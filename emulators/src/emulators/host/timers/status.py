"""The status of a timer, and the decisions from it at the start and after a run. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from emulators.host.timers.schedule import Schedule

NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Status:
    """The content of a timer's status blob. `last` is NEVER before the first firing."""

    last: datetime
    next: datetime
    updated: datetime

    def to_json(self) -> str:
        return json.dumps({"Last": _text(self.last), "Next": _text(self.next), "LastUpdated": _text(self.updated)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Status:
        """Parse a status. Raises ValueError for any other text."""
        values = json.loads(text)
        try:
            return cls(*(_time(values[name]) for name in ("Last", "Next", "LastUpdated")))
        except (KeyError, TypeError) as exc:
            raise ValueError(f"not a timer status: {text!r}") from exc


@dataclass(frozen=True)
class Start:
    """The decision when a timer starts. If `changed`, the status must be written before anything runs."""

    status: Status
    past_due: bool = False
    changed: bool = False


def at_start(schedule: Schedule, saved: Status | None, now: datetime) -> Start:
    """Return the decision when a timer starts. A firing that was missed while no host ran is past due, unless the
    schedule has changed."""
    if saved is None:
        return Start(Status(NEVER, schedule.next(now), now), changed=True)
    since = saved.updated if saved.last == NEVER else saved.last
    expected = schedule.next(since)
    if saved.next == expected:
        return Start(saved, past_due=now > saved.next)
    if now > expected:
        expected, since = schedule.next(now), now
    return Start(Status(NEVER, expected, since), changed=True)


def after_run(schedule: Schedule, status: Status, began: datetime, *, scheduled: bool) -> Status:
    """Return the status after a run that started at `began`.

    A clock that is slightly fast must not fire twice, so a scheduled run counts at least from its due time. After an
    overrun the next firing is in the past and runs at once, and other missed firings are skipped.
    """
    last = max(began, status.next) if scheduled else began
    return Status(last, schedule.next(last), last)


def _text(moment: datetime) -> str:
    return moment.isoformat()


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
