"""The state across restarts: pending deliveries, and the position in the access log. One SQLite file.

An event and the position after its log line are written in one transaction, so a restart neither loses a write nor
reads it twice. A completed delivery is removed shortly afterwards, so a delivery completed just before a crash is
repeated. The file survives a killed process but not a power cut (synchronous=OFF), which an emulator on a laptop need
not survive.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from emulators.eventgrid.accesslog import Position
from emulators.eventgrid.delivery import Delivery

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS deliveries (
    id INTEGER PRIMARY KEY, subscription TEXT NOT NULL, body TEXT NOT NULL, published REAL NOT NULL, due REAL NOT NULL,
    attempts INTEGER NOT NULL, last_attempt REAL NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), began INTEGER, offset INTEGER);
"""
PUT = "INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Store:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path)
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        self._db.close()

    def put(self, deliveries: Iterable[Delivery], position: Position | None = None) -> None:
        """Write new or changed deliveries, and the new log position, in one transaction."""
        with self._db:
            self._db.executemany(PUT, [_row(delivery) for delivery in deliveries])
            if position is not None:
                self._db.execute("INSERT OR REPLACE INTO position VALUES (1, ?, ?)", (position.began, position.offset))

    def remove(self, ids: Iterable[int]) -> None:
        with self._db:
            self._db.executemany("DELETE FROM deliveries WHERE id = ?", [(number,) for number in ids])

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that were pending when the last process ended, oldest first."""
        return [Delivery(*row) for row in self._db.execute("SELECT * FROM deliveries ORDER BY id")]

    def position(self) -> Position | None:
        row = self._db.execute("SELECT began, offset FROM position").fetchone()
        return Position(*row) if row else None


def _row(d: Delivery) -> tuple[object, ...]:
    return d.id, d.subscription, d.body, d.published, d.due, d.attempts, d.last_attempt, d.outcome, d.reason
