"""Snapshots: the content of a blob at a moment, stored as a row of its own that refers to the same bytes.

https://learn.microsoft.com/rest/api/storageservices/snapshot-blob
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from emulators.storage.blobs.extents import Extents
from emulators.storage.blobs.model import NONE, Blob, Content, blob_of, content_of, facts_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS snapshots (
    container INTEGER, name TEXT, time TEXT, facts TEXT, content TEXT,
    PRIMARY KEY (container, name, time)) WITHOUT ROWID;
"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")
TICKS = 10_000_000  # of a second
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OF_ONE = "container = ? AND name = ? AND time = ?"
OF_BLOB = "container = ? AND name = ?"


class Snapshots:
    """The snapshots of one account's blobs. All changes must run in a transaction."""

    def __init__(self, db: sqlite3.Connection, extents: Extents) -> None:
        self._db = db
        self._extents = extents

    def find(self, container: int, name: str, time: str) -> Blob | None:
        key = (container, name, time)
        row = self._db.execute(f"SELECT facts FROM snapshots WHERE {OF_ONE}", key).fetchone()  # noqa: S608
        return blob_of(row[0]) if row else None

    def content(self, container: int, name: str, time: str) -> Content:
        """Return the content of an existing snapshot."""
        key = (container, name, time)
        (text,) = self._db.execute(f"SELECT content FROM snapshots WHERE {OF_ONE}", key).fetchone()  # noqa: S608
        return content_of(text)

    def any(self, container: int, name: str) -> bool:
        text = f"SELECT 1 FROM snapshots WHERE {OF_BLOB} LIMIT 1"  # noqa: S608
        return self._db.execute(text, (container, name)).fetchone() is not None

    def create(self, container: int, name: str, blob: Blob, tick: int) -> Blob:
        """Take a snapshot of an existing blob with these facts. Its time is that of `tick`, or of the next free
        tick."""
        while self.find(container, name, time_of(tick)):
            tick += 1
        made = replace(blob, snapshot=time_of(tick), lease=NONE)
        (text,) = self._db.execute(f"SELECT content FROM blobs WHERE {OF_BLOB}", (container, name)).fetchone()  # noqa: S608
        self._extents.hold(content_of(text).pieces)
        row = (container, name, made.snapshot, facts_of(made), text)
        self._db.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)", row)
        return made

    def delete(self, container: int, name: str, time: str = "") -> None:
        """Delete one snapshot, or all snapshots of the blob."""
        text, key = (OF_ONE, (container, name, time)) if time else (OF_BLOB, (container, name))
        rows = self._db.execute(f"DELETE FROM snapshots WHERE {text} RETURNING content", key).fetchall()  # noqa: S608
        for (content,) in rows:
            self._extents.let_go(content_of(content).pieces)


def time_of(tick: int) -> str:
    """Format a tick, a ten millionth of a second since 1970, as Azure does."""
    seconds, rest = divmod(tick, TICKS)
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{rest:07d}Z"
