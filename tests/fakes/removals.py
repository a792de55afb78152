"""Removals in memory."""

from __future__ import annotations

from datetime import datetime

from shared.removals.model import Removal, RemovalKind


class FakeRemovals:
    def __init__(self) -> None:
        self.rows: dict[tuple[RemovalKind, str, datetime], Removal] = {}

    def put(self, removal: Removal) -> None:
        self.rows[(removal.what, removal.name, removal.asked_at)] = removal

    def get(self, what: RemovalKind, name: str, asked_at: datetime) -> Removal | None:
        return self.rows.get((what, name, asked_at))

    def newest(self, limit: int = 100) -> list[Removal]:
        return sorted(self.rows.values(), key=lambda removal: removal.asked_at, reverse=True)[:limit]
