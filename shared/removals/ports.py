"""Where the records of removals are kept."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.drops.ports import DropPorts
from shared.kernel.drop_key import DropKey
from shared.removals.model import Removal, What


class Named(Protocol):
    """What has a name is kept. Models answer."""

    def needing_run(self, run: str) -> list[str]:
        """The versions that are this run's model, as `churn/4`."""

    def needing_drop(self, drop: DropKey) -> list[str]:
        """The versions that were trained on this drop, its whole route, or something in it."""


class Removals(Protocol):
    """One record for each removal, for ever."""

    def put(self, removal: Removal) -> None:
        """Write the record, replacing one of the same thing and time."""

    def get(self, what: What, name: str, asked_at: datetime) -> Removal | None:
        """The record, or None."""

    def newest(self, limit: int = 100) -> list[Removal]:
        """Up to `limit` records, the newest first."""


class RemovalPorts(DropPorts, Protocol):
    """Those of drops, the removals, and what models need."""

    @property
    def named(self) -> Named: ...
    @property
    def removals(self) -> Removals: ...
