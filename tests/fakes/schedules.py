"""Schedules in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule
from tests.fakes.records import Etags


class FakeSchedules:
    def __init__(self) -> None:
        self.rows: dict[str, Stored[Schedule]] = {}
        self.fired: dict[tuple[str, int], Firing] = {}
        self._etags = Etags()

    def add(self, schedule: Schedule) -> None:
        if schedule.id in self.rows:
            raise Changed(f"schedule {schedule.id} is there already")
        self.rows[schedule.id] = Stored(schedule, self._etags.next())

    def get(self, schedule: str) -> Stored[Schedule] | None:
        return self.rows.get(schedule)

    def all(self) -> list[Schedule]:
        return [self.rows[name].value for name in sorted(self.rows)]

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        name = stored.value.id
        if name not in self.rows or self.rows[name].etag != stored.etag:
            raise Changed(f"schedule {name} changed in between")
        self.rows[name] = Stored(replace(stored.value, **changes), self._etags.next())
        return self.rows[name]

    def remove(self, schedule: str) -> bool:
        return self.rows.pop(schedule, None) is not None

    def claim(self, firing: Firing) -> Firing:
        return self.fired.setdefault((firing.schedule, firing.order), firing)

    def finish(self, firing: Firing) -> None:
        self.fired[(firing.schedule, firing.order)] = firing

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        found = [firing for (name, _), firing in self.fired.items() if name == schedule]
        return sorted(found, key=lambda firing: -firing.order)[:limit]
