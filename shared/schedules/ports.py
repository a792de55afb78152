"""Ports for schedules and firings, and for the meaning of models' versions."""

from __future__ import annotations

from typing import Any, Protocol

from shared.drops.ports import DropPorts
from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule


class Schedules(Protocol):
    """The schedules, and one row per firing."""

    def add(self, schedule: Schedule) -> None:
        """Store a new schedule. Raises Changed for a taken id."""

    def get(self, schedule: str) -> Stored[Schedule] | None:
        """Return the schedule, or None."""

    def all(self) -> list[Schedule]:
        """Return every schedule by id. An unreadable schedule is skipped."""

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        """Merge these fields. Raises Changed if the schedule changed since the read, or no longer exists."""

    def remove(self, schedule: str) -> bool:
        """Delete the schedule; the firings stay. Return False for a missing schedule."""

    def claim(self, firing: Firing) -> Firing:
        """Record the decision for this firing, once. Return an earlier record, if any."""

    def finish(self, firing: Firing) -> None:
        """Replace the firing's outcome."""

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        """Return up to `limit` firings, newest first."""


class Versions(Protocol):
    """Names of model versions."""

    def run_of(self, text: str) -> str | None:
        """Return the run of the version that `churn@production` means now; None for an unknown model.

        Raises NotFound for a model without such a version.
        """


class SchedulePorts(DropPorts, Protocol):
    """The ports of drops, the schedules, and the meaning of names like churn@production."""

    @property
    def versions(self) -> Versions: ...
    @property
    def schedules(self) -> Schedules: ...
