"""Ports for schedules and their firings, and for what versions of models mean."""

from __future__ import annotations

from typing import Any, Protocol

from shared.drops.ports import DropPorts
from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule


class Schedules(Protocol):
    """The schedules, and one row per firing."""

    def add(self, schedule: Schedule) -> None:
        """Store a new schedule. Raises Changed if its id is taken."""

    def get(self, schedule: str) -> Stored[Schedule] | None:
        """Return the schedule, or None."""

    def all(self) -> list[Schedule]:
        """Return all schedules by id. An unreadable schedule is skipped."""

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        """Merge these fields. Raises Changed if the schedule changed since it was read, or no longer exists."""

    def remove(self, schedule: str) -> bool:
        """Delete the schedule; its firings stay. Return False if it did not exist."""

    def claim(self, firing: Firing) -> Firing:
        """Record the decision for this firing, once. Return the earlier record if there is one."""

    def finish(self, firing: Firing) -> None:
        """Replace the firing's outcome."""

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        """Return up to `limit` firings, newest first."""


class Versions(Protocol):
    """Names of model versions."""

    def run_of(self, text: str) -> str | None:
        """Return the run of the version that `churn@production` means now; None if there is no such model.

        Raises NotFound for a model without such a version.
        """


class SchedulePorts(DropPorts, Protocol):
    """The ports of drops, the schedules, and the meaning of names like churn@production."""

    @property
    def versions(self) -> Versions: ...
    @property
    def schedules(self) -> Schedules: ...
