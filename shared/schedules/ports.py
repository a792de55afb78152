"""Where schedules and their firings are kept."""

from __future__ import annotations

from typing import Any, Protocol

from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule


class Schedules(Protocol):
    """The schedules, and one row for each of their firings."""

    def add(self, schedule: Schedule) -> None:
        """Keep a new schedule. Raises Changed if there is one of this id."""

    def get(self, schedule: str) -> Stored[Schedule] | None:
        """The schedule, or None."""

    def all(self) -> list[Schedule]:
        """All schedules, by id. One that can't be read is left out, and stops no other."""

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        """Merge these fields. Raises Changed unless it still is as it was read, or if it is gone."""

    def remove(self, schedule: str) -> bool:
        """Take it away; its firings stay. False if it was not there."""

    def claim(self, firing: Firing) -> Firing:
        """Write down what becomes of this instant, once: gives what was written before, if anything was."""

    def finish(self, firing: Firing) -> None:
        """Write over what became of it."""

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        """Up to `limit` firings, the newest first."""
