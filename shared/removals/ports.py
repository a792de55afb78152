"""Ports for the records of removals, and for the needs of models."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.drops.ports import DropPorts
from shared.kernel.drop_key import DropKey
from shared.removals.model import Removal, RemovalKind


class Named(Protocol):
    """The needs of models' versions. Implemented by models."""

    def needing_run(self, run: str) -> list[str]:
        """Return the versions made from this run, as `churn/4`."""

    def needing_drop(self, drop: DropKey) -> list[str]:
        """Return the versions trained on this drop, on the whole route, or on a part of the drop."""


class Removals(Protocol):
    """One permanent record per removal."""

    def put(self, removal: Removal) -> None:
        """Write the record, over a record with this object and time."""

    def get(self, what: RemovalKind, name: str, asked_at: datetime) -> Removal | None:
        """Return the record, or None."""

    def newest(self, limit: int = 100) -> list[Removal]:
        """Return up to `limit` records, newest first."""


class RemovalPorts(DropPorts, Protocol):
    """The ports of drops, removals, and the needs of models."""

    @property
    def named(self) -> Named: ...
    @property
    def removals(self) -> Removals: ...
