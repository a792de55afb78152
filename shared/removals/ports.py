"""Ports for the records of removals, and for what models need."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.drops.ports import DropPorts
from shared.kernel.drop_key import DropKey
from shared.removals.model import Removal, RemovalKind


class Named(Protocol):
    """What the versions of models need. Implemented by models."""

    def needing_run(self, run: str) -> list[str]:
        """Return the versions that are this run's model, as `churn/4`."""

    def needing_drop(self, drop: DropKey) -> list[str]:
        """Return the versions that trained on this drop, its whole route, or something in the drop."""


class Removals(Protocol):
    """One permanent record per removal."""

    def put(self, removal: Removal) -> None:
        """Write the record, replacing a record with the same object and time."""

    def get(self, what: RemovalKind, name: str, asked_at: datetime) -> Removal | None:
        """Return the record, or None."""

    def newest(self, limit: int = 100) -> list[Removal]:
        """Return up to `limit` records, newest first."""


class RemovalPorts(DropPorts, Protocol):
    """The ports of drops, the removals, and what models need."""

    @property
    def named(self) -> Named: ...
    @property
    def removals(self) -> Removals: ...
