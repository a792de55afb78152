"""Where the records of removals are kept."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.removals.model import Removal, What


class Removals(Protocol):
    """One record for each removal, for ever."""

    def put(self, removal: Removal) -> None:
        """Write the record, replacing one of the same thing and time."""

    def get(self, what: What, name: str, asked_at: datetime) -> Removal | None:
        """The record, or None."""

    def newest(self, limit: int = 100) -> list[Removal]:
        """Up to `limit` records, the newest first."""
