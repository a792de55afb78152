"""What changes and deletions leave behind: snapshots, previous versions, and deleted blobs that can be restored.

https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview#blob-soft-delete-and-versioning
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from emulators.storage.blobs import deleted, kept
from emulators.storage.blobs.extents import Extents
from emulators.storage.blobs.model import blob_of

DAY = 24 * 3600
SCHEMA = f"{deleted.SCHEMA}{kept.SCHEMA}"
TABLES = (kept.SNAPSHOTS, kept.VERSIONS, "deleted")


class History:
    """The past of one account's blobs. All changes must run in a transaction. With `retention_days`, deleted blobs,
    snapshots and previous versions can be restored for so many days."""

    def __init__(
        self, db: sqlite3.Connection, extents: Extents, clock: Callable[[], float], new_time: Callable[[], str]
    ) -> None:
        self._db = db
        self._clock = clock
        self._new_time = new_time
        self.snapshots = kept.Kept(db, extents, kept.SNAPSHOTS)
        self.versions = kept.Kept(db, extents, kept.VERSIONS)
        self.deleted = deleted.Deleted(db, extents)
        self.retention_days = 0

    def _period(self) -> tuple[float, float]:
        now = self._clock()
        return now, now + self.retention_days * DAY

    def before_writing(self, container: int, name: str, keeps: bool) -> None:
        """Keep the blob, if it exists, before it is overwritten: with `keeps` as a previous version, otherwise as a
        deleted snapshot, if deleted blobs are retained."""
        if keeps:
            self.versions.demote(container, name)
        elif self.retention_days:
            self.deleted.keep_blob(container, name, *self._period(), self._new_time())

    def before_deleting(self, container: int, name: str, keeps: bool) -> None:
        """Keep the blob and its snapshots before they are deleted. With `keeps`, the blob becomes a previous version,
        which stays until it is deleted itself."""
        if keeps:
            self.versions.demote(container, name)
        elif self.retention_days:
            self.deleted.keep_blob(container, name, *self._period())
        if self.retention_days:
            self.deleted.keep_past(kept.SNAPSHOTS, container, name, *self._period())

    def delete(self, table: str, container: int, name: str, time: str = "") -> None:
        """Delete one snapshot or previous version, or all snapshots of the blob. `table` is SNAPSHOTS or VERSIONS."""
        if self.retention_days:
            self.deleted.keep_past(table, container, name, *self._period(), time)
        (self.snapshots if table == kept.SNAPSHOTS else self.versions).delete(container, name, time)

    def restored(self, container: int, name: str) -> tuple[list[deleted.Row], bool]:
        """Restore the deleted previous versions of a blob. Returns its other deleted rows, and whether there were
        versions."""
        rows = self.deleted.restored(container, name)
        versions = [row for row in rows if blob_of(row[1]).previous]
        for row in versions:
            self._db.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?)", (container, name, *row))
        return [row for row in rows if row not in versions], bool(versions)

    def drop(self, container: int, name: str) -> None:
        """Remove all that is kept of the blob, except for its snapshots."""
        self.versions.delete(container, name)
        self.deleted.drop(container, name)

    def purge(self, limit: int) -> bool:
        """Remove some of what was deleted longer ago than the retention. Returns whether there may be more."""
        return self.deleted.purge(self._clock(), limit)
