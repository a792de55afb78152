"""What survives a restart: documents by kind and name, and the outbox of events, in one SQLite file.

A document and the events that tell of it are written in one transaction: either both are there after a crash or
neither is. Every write is on disk when it returns (a power cut may still take the last ones).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from emulators.azureml.models import Json

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (kind TEXT, name TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
"""


class Store:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        self._db.close()

    def put(self, kind: str, name: str, body: Json, events: Iterable[Json] = ()) -> None:
        """Insert or replace a document, and add `events` to the outbox."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, name, json.dumps(body)))
            self._db.executemany("INSERT INTO outbox (body) VALUES (?)", [(json.dumps(e),) for e in events])

    def delete(self, kind: str, name: str) -> None:
        """Remove a document; one that is not there is no error."""
        with self._db:
            self._db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))

    def all(self, kind: str) -> list[Json]:
        rows = self._db.execute("SELECT body FROM documents WHERE kind = ?", (kind,))
        return [json.loads(body) for (body,) in rows]

    def pending(self, limit: int) -> list[tuple[int, Json]]:
        """The oldest events of the outbox, with the numbers that `delivered` takes."""
        rows = self._db.execute("SELECT number, body FROM outbox ORDER BY number LIMIT ?", (limit,))
        return [(number, json.loads(body)) for number, body in rows]

    def delivered(self, numbers: Iterable[int]) -> None:
        with self._db:
            self._db.executemany("DELETE FROM outbox WHERE number = ?", [(number,) for number in numbers])
