"""Containers and blobs, in one SQLite file and a folder of extents. No HTTP here.

A blob is found by its container and name, so reading, writing and listing cost the same for any number of blobs. A row
has the blob's facts as JSON, and its content as a list of extents. A copy is a new row with the same extents. Every
change is one transaction. No method here awaits, so a caller's checks still hold when it writes, unless the caller
itself awaited in between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from emulators.storage.blobs import history, kept, page_ranges, staging, tags
from emulators.storage.blobs.extents import SCHEMA as EXTENTS_SCHEMA
from emulators.storage.blobs.extents import SMALL, Extents, Piece, Upload
from emulators.storage.blobs.listing import ITSELF, Wanted, listed
from emulators.storage.blobs.model import (
    Blob,
    Container,
    Content,
    Listed,
    blob_of,
    container_of,
    content_of,
    facts_of,
)
from emulators.storage.common.database import Store, transaction
from emulators.storage.common.errors import StorageError

PURGED_AT_ONCE = 500
OF_BLOBS = ("blobs", "blocks", *history.TABLES)  # the tables with rows of blobs

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS containers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, facts TEXT);
CREATE TABLE IF NOT EXISTS blobs (
    container INTEGER, name TEXT, facts TEXT, content TEXT, PRIMARY KEY (container, name)) WITHOUT ROWID;
{staging.SCHEMA}{EXTENTS_SCHEMA}{history.SCHEMA}{tags.SCHEMA}"""


class Blobs(Store):
    """The blobs of one account. `extents` has their bytes, `blocks` what is not committed yet, and `history` what
    changes leave behind. With `versioning`, each change keeps the previous state of the blob as a version."""

    def __init__(
        self, file: Path, folder: Path, clock: Callable[[], float] = time.time, versioning: bool = False
    ) -> None:
        super().__init__(file, SCHEMA, clock)
        self.extents = Extents(self._db, folder)
        self.blocks = staging.Staged(self._db, self.extents, clock)
        self.history = history.History(self._db, self.extents, clock, lambda: kept.time_of(self._tick()))
        self.versioning = versioning
        self.tags = tags.TagIndex(self._db)
        self._ticks = 0

    def new_etag(self) -> str:
        """Return an unused etag."""
        return f"0x{self._tick():X}"

    def new_version(self) -> str:
        """Return an unused name for a version, or '' if the account has no versions."""
        return kept.time_of(self._tick()) if self.versioning else ""

    def new_clearing(self) -> int:
        """Return an unused number for a hole (page_ranges.py)."""
        return -self._tick()

    def _tick(self) -> int:
        self._ticks = max(self._ticks + 1, int(self.clock() * kept.TICKS))
        return self._ticks

    # Containers

    def container(self, name: str) -> Container:
        """Return the container. Raises StorageError, 404, if it does not exist."""
        row = self._db.execute("SELECT id, facts FROM containers WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StorageError(404, "ContainerNotFound", "The specified container does not exist.")
        return container_of(row[0], name, row[1])

    def create_container(
        self, name: str, metadata: dict[str, str], scope: str = "", scope_fixed: bool = False, public: str = ""
    ) -> Container:
        """Create a container. Raises StorageError, 409, if it exists."""
        if self._db.execute("SELECT 1 FROM containers WHERE name = ?", (name,)).fetchone():
            raise StorageError(409, "ContainerAlreadyExists", "The specified container already exists.")
        made = Container(0, name, self.new_etag(), self.clock(), metadata)
        made = replace(made, scope=scope, scope_fixed=scope_fixed, public=public)
        row = (name, facts_of(made))
        number = self._db.execute("INSERT INTO containers (name, facts) VALUES (?, ?)", row).lastrowid
        return replace(made, id=number or 0)

    def change_container(self, changed: Container) -> None:
        self._db.execute("UPDATE containers SET facts = ? WHERE id = ?", (facts_of(changed), changed.id))

    def delete_container(self, container: Container) -> None:
        """Delete a container. Its blobs are removed from the database in steps, by `purge`."""
        with transaction(self._db):
            self._db.execute("DELETE FROM containers WHERE id = ?", (container.id,))
            self._dropped.add(container.id)

    def containers(self, prefix: str, start: str, limit: int) -> list[Container]:
        """Return up to `limit` containers whose names have this prefix, from the name `start` on, sorted by name."""
        found = self._db.execute(
            "SELECT id, name, facts FROM containers WHERE name >= ? AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?",
            (max(prefix, start), len(prefix), prefix, limit),
        )
        return [container_of(*row) for row in found]

    # Blobs

    def find(self, container: int, name: str, snapshot: str = "", version: str = "") -> Blob | None:
        """Return a blob, one of its snapshots, or one of its versions, which may be the current one."""
        if snapshot:
            return self.history.snapshots.find(container, name, snapshot)
        row = self._db.execute("SELECT facts FROM blobs WHERE container = ? AND name = ?", (container, name)).fetchone()
        found = blob_of(row[0]) if row else None
        if version and not (found and found.version == version):
            return self.history.versions.find(container, name, version)
        return found

    def content(self, container: int, name: str, snapshot: str = "", version: str = "") -> Content:
        """Return the content of an existing blob, snapshot or previous version."""
        if snapshot or version:
            return (self.history.snapshots if snapshot else self.history.versions).content(
                container, name, snapshot or version
            )
        (text,) = self._db.execute(
            "SELECT content FROM blobs WHERE container = ? AND name = ?", (container, name)
        ).fetchone()
        return content_of(text)

    def write(self, container: int, name: str, blob: Blob, content: Content | Upload, keeps: bool = False) -> None:
        """Create or replace a blob, and drop its uncommitted blocks. With `keeps`, the replaced blob is kept as a
        version."""
        with transaction(self._db):
            self.history.before_writing(container, name, keeps)
            made = Content(self.extents.store(content)) if isinstance(content, Upload) else content
            before = self._pieces(container, name) + self.blocks.drop(container, name)
            self.extents.hold(made.pieces, instead_of=before)
            row = (container, name, facts_of(blob), json.dumps([made.pieces, made.blocks], separators=(",", ":")))
            self._db.execute("REPLACE INTO blobs VALUES (?, ?, ?, ?)", row)
            self.tags.put(container, name, blob.tags)

    def append(self, container: int, name: str, blob: Blob, upload: Upload) -> None:
        """Append bytes to an append blob, whose new facts are `blob`. A small last piece is joined with small
        appended bytes."""
        pieces = self.content(container, name).pieces
        with transaction(self._db):
            joined = self._joined(pieces[-1:], upload)
            if joined:
                self.extents.let_go([pieces.pop()])
            added = self.extents.store(joined or upload)
            self.extents.hold(added)
            text = json.dumps([[*pieces, *added], []], separators=(",", ":"))
            self._db.execute(
                "UPDATE blobs SET facts = ?, content = ? WHERE container = ? AND name = ?",
                (facts_of(blob), text, container, name),
            )

    def write_pages(self, container: int, name: str, blob: Blob, begin: int, content: Upload | list[Piece]) -> None:
        """Write bytes or a hole to a page blob, starting at the byte `begin`. `blob` are its new facts."""
        before = self.content(container, name).pieces
        with transaction(self._db):
            new = self.extents.store(content) if isinstance(content, Upload) else content
            self._replace_pieces(container, name, blob, before, page_ranges.with_range(before, begin, new))

    def resize(self, container: int, name: str, blob: Blob) -> None:
        """Truncate a page blob to the size in its new facts, or extend it with a hole."""
        before = self.content(container, name).pieces
        with transaction(self._db):
            self._replace_pieces(container, name, blob, before, page_ranges.resized(before, blob.size))

    def _replace_pieces(self, container: int, name: str, blob: Blob, before: list[Piece], after: list[Piece]) -> None:
        self.extents.hold(after, instead_of=before)
        row = (facts_of(blob), json.dumps([after, []], separators=(",", ":")), container, name)
        self._db.execute("UPDATE blobs SET facts = ?, content = ? WHERE container = ? AND name = ?", row)

    def _joined(self, last: list[Piece], upload: Upload) -> Upload | None:
        """Return the last piece and the appended bytes as one upload, or None unless both are small."""
        if not last or upload.data is None or last[0][2] + upload.size > SMALL:
            return None
        before = self.extents.at_once(last)
        return None if before is None else replace(upload, data=before + upload.data, size=len(before) + upload.size)

    def change(self, container: int, name: str, blob: Blob, keeps: bool = False) -> None:
        """Change the facts of an existing blob, snapshot or version. With `keeps`, the previous state of the blob
        is kept as a version."""
        with transaction(self._db):
            if blob.snapshot or blob.previous:
                of = self.history.snapshots if blob.snapshot else self.history.versions
                of.change(container, name, blob.snapshot or blob.version, blob)
                return
            if keeps:
                self.history.versions.demote(container, name)
            row = (facts_of(blob), container, name)
            self._db.execute("UPDATE blobs SET facts = ? WHERE container = ? AND name = ?", row)
            self.tags.put(container, name, blob.tags)

    def delete(self, container: int, name: str, keeps: bool = False) -> None:
        """Delete the blob, its snapshots, and its uncommitted blocks. With `keeps`, the current version becomes a
        previous version."""
        with transaction(self._db):
            self.history.before_deleting(container, name, keeps)
            self._delete(container, name)

    def undelete(self, container: int, name: str) -> bool:
        """Restore a deleted blob, its deleted snapshots and its deleted versions. If a new blob has the name, the
        deleted blob becomes a snapshot of the new blob. Returns whether there is such a blob, deleted or not."""
        with transaction(self._db):
            is_there = self.find(container, name) is not None
            rows, any_version = self.history.restored(container, name)
            for moment, facts, content in rows:
                if moment == ITSELF and not is_there:
                    self._db.execute("INSERT INTO blobs VALUES (?, ?, ?, ?)", (container, name, facts, content))
                    self.tags.put(container, name, blob_of(facts).tags)
                    continue
                time = kept.time_of(self._tick()) if moment == ITSELF else moment
                as_snapshot = facts_of(replace(blob_of(facts), snapshot=time))
                self._db.execute(
                    "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)", (container, name, time, as_snapshot, content)
                )
            return is_there or any_version or bool(rows)

    def delete_version(self, container: int, name: str, version: str) -> None:
        """Delete a previous version."""
        with transaction(self._db):
            self.history.delete(kept.VERSIONS, container, name, version)

    def _delete(self, container: int, name: str) -> None:
        self.extents.let_go(self._pieces(container, name) + self.blocks.drop(container, name))
        self.history.snapshots.delete(container, name)
        self._db.execute("DELETE FROM blobs WHERE container = ? AND name = ?", (container, name))
        self.tags.put(container, name, {})

    # Snapshots

    def create_snapshot(self, container: int, name: str, blob: Blob) -> Blob:
        """Take a snapshot of an existing blob with these facts, and return it. Its `snapshot` is its time."""
        with transaction(self._db):
            return self.history.snapshots.create_snapshot(container, name, blob, self._tick())

    def has_snapshots(self, container: int, name: str) -> bool:
        return self.history.snapshots.any(container, name)

    def delete_snapshots(self, container: int, name: str, snapshot: str = "") -> None:
        """Delete one snapshot, or all snapshots of the blob."""
        with transaction(self._db):
            self.history.delete(kept.SNAPSHOTS, container, name, snapshot)

    # Listing

    def listed(self, container: int, wanted: Wanted) -> list[Listed]:
        return list(listed(self._db, container, wanted))

    # Removing

    def purge(self) -> bool:
        """Remove some blobs of deleted containers, old uncommitted blocks, and extents without references.

        Returns whether there may be more.
        """
        with transaction(self._db):
            more = self._dropped.purge(self._remove) | self.blocks.purge(PURGED_AT_ONCE)
            more |= self.history.purge(PURGED_AT_ONCE)
        with transaction(self._db):
            return self.extents.purge() | more

    def _remove(self, container: int) -> int:
        """Remove some of the blobs of a deleted container. Returns the number of removed blobs."""
        names = self._db.execute(
            " UNION ".join(f"SELECT name FROM {table} WHERE container = ?1" for table in OF_BLOBS) + " LIMIT ?2",  # noqa: S608
            (container, PURGED_AT_ONCE),
        ).fetchall()
        for (name,) in names:
            self._delete(container, name)
            self.history.drop(container, name)
        return len(names)

    def _pieces(self, container: int, name: str) -> list[Piece]:
        """Return the pieces of the blob; empty if the blob does not exist."""
        row = self._db.execute(
            "SELECT content FROM blobs WHERE container = ? AND name = ?", (container, name)
        ).fetchone()
        return content_of(row[0]).pieces if row else []
