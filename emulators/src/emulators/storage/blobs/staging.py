"""Uncommitted blocks: what was uploaded for a block blob, and is not yet in its list of blocks.

https://learn.microsoft.com/rest/api/storageservices/put-block
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from emulators.storage.blobs.extents import Extents, Piece, Upload
from emulators.storage.blobs.model import Block, pieces_of
from emulators.storage.common.database import transaction

SECONDS = 7 * 24 * 3600  # after which a block is removed

SCHEMA = """
CREATE TABLE IF NOT EXISTS blocks (
    container INTEGER, name TEXT, id TEXT, size INTEGER, staged REAL, pieces TEXT,
    PRIMARY KEY (container, name, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blocks_encryption (
    container INTEGER, name TEXT, encryption TEXT, PRIMARY KEY (container, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blocks_by_age ON blocks (staged);
"""
OF_BLOB = "container = ? AND name = ?"


class Staged:
    """The uncommitted blocks of one account."""

    def __init__(self, db: sqlite3.Connection, extents: Extents, clock: Callable[[], float]) -> None:
        self._db = db
        self._extents = extents
        self._clock = clock

    def put(self, container: int, name: str, block: str, content: Upload | list[Piece], encryption: str = "") -> None:
        """Store a block, in a transaction. `encryption` is the encryption of all uncommitted blocks of the blob."""
        with transaction(self._db):
            pieces = self._extents.store(content) if isinstance(content, Upload) else content
            self._extents.hold(pieces)
            key = (container, name, block)
            before = self._db.execute(f"DELETE FROM blocks WHERE {OF_BLOB} AND id = ? RETURNING pieces", key).fetchall()  # noqa: S608
            for (old,) in before:
                self._extents.let_go(pieces_of(json.loads(old)))
            size = sum(piece[2] for piece in pieces)
            row = (container, name, block, size, self._clock(), json.dumps(pieces))
            self._db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", row)
            if encryption:
                self._db.execute("REPLACE INTO blocks_encryption VALUES (?, ?, ?)", (container, name, encryption))

    def of(self, container: int, name: str) -> dict[str, Block]:
        """Return the blob's blocks by id, sorted by id."""
        text = f"SELECT id, size, pieces FROM blocks WHERE {OF_BLOB} ORDER BY id"  # noqa: S608
        rows = self._db.execute(text, (container, name))
        return {row[0]: Block(row[0], row[1], pieces_of(json.loads(row[2]))) for row in rows}

    def encryption(self, container: int, name: str) -> str | None:
        """Return the encryption of the blob's blocks; None if it has none."""
        text = f"SELECT encryption FROM blocks_encryption WHERE {OF_BLOB}"  # noqa: S608
        row = self._db.execute(text, (container, name)).fetchone()
        return row[0] if row else "" if self.any_id(container, name) else None

    def any_id(self, container: int, name: str) -> str | None:
        """Return the id of one of the blob's blocks; None if it has none."""
        row = self._db.execute(f"SELECT id FROM blocks WHERE {OF_BLOB} LIMIT 1", (container, name)).fetchone()  # noqa: S608
        return row[0] if row else None

    def drop(self, container: int, name: str) -> list[Piece]:
        """Drop the blob's blocks, and return their pieces for the caller to release. Must run in a transaction."""
        key = (container, name)
        rows = self._db.execute(f"DELETE FROM blocks WHERE {OF_BLOB} RETURNING pieces", key).fetchall()  # noqa: S608
        self._db.execute(f"DELETE FROM blocks_encryption WHERE {OF_BLOB}", key)  # noqa: S608
        return [piece for (pieces,) in rows for piece in pieces_of(json.loads(pieces))]

    def purge(self, limit: int) -> bool:
        """Remove some old blocks, in the caller's transaction. Returns whether there may be more."""
        old = self._db.execute(
            "SELECT container, name FROM blocks WHERE staged < ? LIMIT ?", (self._clock() - SECONDS, limit)
        ).fetchall()
        for container, name in old:
            self._extents.let_go(self.drop(container, name))
        return bool(old)
