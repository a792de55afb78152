"""Soft delete: deleted and overwritten blobs, snapshots and versions are kept for some days and can be restored.

https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from emulators.storage.blobs.extents import Extents
from emulators.storage.blobs.listing import ITSELF
from emulators.storage.blobs.model import NONE, blob_of, content_of, facts_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS deleted (
    container INTEGER, name TEXT, time TEXT, facts TEXT, content TEXT, until REAL,
    PRIMARY KEY (container, name, time)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deleted_by_end ON deleted (until);
"""
OF_BLOB = "container = ? AND name = ?"
Row = tuple[str, str, str]  # the time of a snapshot or version or ITSELF, facts, and content


class Deleted:
    """The deleted blobs, snapshots and previous versions of one account. All changes must run in a transaction."""

    def __init__(self, db: sqlite3.Connection, extents: Extents) -> None:
        self._db = db
        self._extents = extents

    def any(self, container: int, name: str) -> bool:
        text = f"SELECT 1 FROM deleted WHERE {OF_BLOB} LIMIT 1"  # noqa: S608
        return self._db.execute(text, (container, name)).fetchone() is not None

    def keep_blob(self, container: int, name: str, now: float, until: float, snapshot: str = "") -> None:
        """Keep a copy of the blob, if it exists, until this time. With `snapshot`, the copy is a deleted snapshot
        of this time: the blob before it was overwritten."""
        text = f"SELECT facts, content FROM blobs WHERE {OF_BLOB}"  # noqa: S608
        for facts, content in self._db.execute(text, (container, name)).fetchall():
            self._keep(container, name, (snapshot or ITSELF, facts, content), now, until)

    def keep_past(self, table: str, container: int, name: str, now: float, until: float, time: str = "") -> None:
        """Keep copies of one snapshot or previous version, or of all snapshots of the blob. `table` is kept.SNAPSHOTS
        or kept.VERSIONS."""
        text, key = f"SELECT time, facts, content FROM {table} WHERE {OF_BLOB}", (container, name)  # noqa: S608
        for row in self._db.execute(text, key).fetchall():
            if time in ("", row[0]):
                self._keep(container, name, row, now, until)

    def _keep(self, container: int, name: str, row: Row, now: float, until: float) -> None:
        time, facts, content = row
        self._extents.hold(content_of(content).pieces)
        blob = blob_of(facts)
        snapshot = "" if time == ITSELF or blob.previous else time
        made = replace(blob, snapshot=snapshot, lease=NONE, deleted=now, until=until)
        self._remove("container = ? AND name = ? AND time = ?", container, name, time)
        values = (container, name, time, facts_of(made), content, until)
        self._db.execute("INSERT INTO deleted VALUES (?, ?, ?, ?, ?, ?)", values)

    def restored(self, container: int, name: str) -> list[Row]:
        """Remove the deleted blob and its deleted snapshots and versions from this table, and return them. Their bytes
        are still held."""
        text = f"DELETE FROM deleted WHERE {OF_BLOB} RETURNING time, facts, content"  # noqa: S608
        rows = self._db.execute(text, (container, name)).fetchall()
        return [(time, facts_of(replace(blob_of(facts), deleted=0.0, until=0.0)), text) for time, facts, text in rows]

    def purge(self, now: float, limit: int) -> bool:
        """Remove some rows whose retention has ended. Returns whether there may be more."""
        where = "(container, name, time) IN (SELECT container, name, time FROM deleted WHERE until <= ? LIMIT ?)"
        return self._remove(where, now, limit) == limit

    def drop(self, container: int, name: str) -> None:
        self._remove(OF_BLOB, container, name)

    def _remove(self, where: str, *values: object) -> int:
        rows = self._db.execute(f"DELETE FROM deleted WHERE {where} RETURNING content", values).fetchall()  # noqa: S608
        for (content,) in rows:
            self._extents.let_go(content_of(content).pieces)
        return len(rows)
