"""Where schedules and their firings are kept, and what versions of models mean."""

from __future__ import annotations

from typing import Any, Protocol

from shared.drops.ports import DropPorts
from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule


class Schedules(Protocol):
    """The schedules, and one row for each of their firings."""

    def add(self, schedule: Schedule) -> None:
        """Store a new schedule. Raises Changed if its id is taken."""

    def get(self, schedule: str) -> Stored[Schedule] | None:
        """The schedule, or None."""

    def all(self) -> list[Schedule]:
        """All schedules, by id. One that can't be read is left out, and stops no other."""

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        """Merge these fields. Raises Changed unless it still is as it was read, or if it is gone."""

    def remove(self, schedule: str) -> bool:
        """Remove it; its firings stay. False if it was not there."""

    def claim(self, firing: Firing) -> Firing:
        """Record the decision for this firing, once: returns an earlier record, if there is one."""

    def finish(self, firing: Firing) -> None:
        """Replace its outcome."""

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        """Up to `limit` firings, the newest first."""


class Versions(Protocol):
    """Models that have names."""

    def run_of(self, text: str) -> str | None:
        """The run of the version that `churn@production` means now; None if there is no such model. Raises NotFound
        for a model that has no such version."""


class SchedulePorts(DropPorts, Protocol):
    """Those of drops, the schedules, and what a name like churn@production means."""

    @property
    def versions(self) -> Versions: ...
    @property
    def schedules(self) -> Schedules: ...
