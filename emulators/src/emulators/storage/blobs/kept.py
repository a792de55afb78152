"""Snapshots and previous versions: the content of a blob at a moment, stored as a row of its own that refers to the
same bytes.

https://learn.microsoft.com/rest/api/storageservices/snapshot-blob
https://learn.microsoft.com/azure/storage/blobs/versioning-overview
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from emulators.storage.blobs.extents import Extents
from emulators.storage.blobs.model import NONE, Blob, Content, blob_of, content_of, facts_of

SNAPSHOTS, VERSIONS = "snapshots", "versions"
SCHEMA = "".join(
    f"CREATE TABLE IF NOT EXISTS {table} (container INTEGER, name TEXT, time TEXT, facts TEXT, content TEXT,"
    " PRIMARY KEY (container, name, time)) WITHOUT ROWID;\n"
    for table in (SNAPSHOTS, VERSIONS)
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")
TICKS = 10_000_000  # of a second
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OF_ONE = "container = ? AND name = ? AND time = ?"
OF_BLOB = "container = ? AND name = ?"


class Kept:
    """The snapshots of one account's blobs, or the previous versions: `table` is SNAPSHOTS or VERSIONS. All changes
    must run in a transaction."""

    def __init__(self, db: sqlite3.Connection, extents: Extents, table: str) -> None:
        self._db = db
        self._extents = extents
        self._table = table

    def find(self, container: int, name: str, time: str) -> Blob | None:
        key = (container, name, time)
        row = self._db.execute(f"SELECT facts FROM {self._table} WHERE {OF_ONE}", key).fetchone()  # noqa: S608
        return blob_of(row[0]) if row else None

    def content(self, container: int, name: str, time: str) -> Content:
        """Return the content of an existing snapshot or version."""
        key = (container, name, time)
        (text,) = self._db.execute(f"SELECT content FROM {self._table} WHERE {OF_ONE}", key).fetchone()  # noqa: S608
        return content_of(text)

    def any(self, container: int, name: str) -> bool:
        text = f"SELECT 1 FROM {self._table} WHERE {OF_BLOB} LIMIT 1"  # noqa: S608
        return self._db.execute(text, (container, name)).fetchone() is not None

    def create_snapshot(self, container: int, name: str, blob: Blob, tick: int) -> Blob:
        """Take a snapshot of an existing blob with these facts. Its time is that of `tick`, or of the next free
        tick."""
        while self.find(container, name, time_of(tick)):
            tick += 1
        made = replace(blob, snapshot=time_of(tick), version="", lease=NONE)
        self._keep(container, name, made.snapshot, made)
        return made

    def demote(self, container: int, name: str) -> None:
        """Keep the current version of a blob, if the blob exists, as a previous version. If the blob was written
        without versioning, its version is the time of its last change."""
        row = self._db.execute(f"SELECT facts FROM blobs WHERE {OF_BLOB}", (container, name)).fetchone()  # noqa: S608
        if row is not None:
            blob = blob_of(row[0])
            version = blob.version or time_of(int(blob.modified * TICKS))
            self._keep(container, name, version, replace(blob, version=version, previous=True, lease=NONE))

    def _keep(self, container: int, name: str, time: str, facts: Blob) -> None:
        """Store these facts with the blob's current content."""
        (text,) = self._db.execute(f"SELECT content FROM blobs WHERE {OF_BLOB}", (container, name)).fetchone()  # noqa: S608
        self._extents.hold(content_of(text).pieces)
        row = (container, name, time, facts_of(facts), text)
        self._db.execute(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?)", row)  # noqa: S608

    def change(self, container: int, name: str, time: str, facts: Blob) -> None:
        row = (facts_of(facts), container, name, time)
        self._db.execute(f"UPDATE {self._table} SET facts = ? WHERE {OF_ONE}", row)  # noqa: S608

    def delete(self, container: int, name: str, time: str = "") -> None:
        """Delete one snapshot or version, or all snapshots or versions of the blob."""
        text, key = (OF_ONE, (container, name, time)) if time else (OF_BLOB, (container, name))
        rows = self._db.execute(f"DELETE FROM {self._table} WHERE {text} RETURNING content", key).fetchall()  # noqa: S608
        for (content,) in rows:
            self._extents.let_go(content_of(content).pieces)


def time_of(tick: int) -> str:
    """Format a tick, a ten millionth of a second since 1970, as Azure does."""
    seconds, rest = divmod(tick, TICKS)
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{rest:07d}Z"
