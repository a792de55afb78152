"""Containers and blobs, in one SQLite file and a folder of extents. No HTTP here.

A blob is found by its container and name: reading, writing and listing cost the same however many others there are.
Its facts are JSON beside its content, the list of its extents; a copy is a new row on the same extents. Every change
is one transaction. Nothing here waits: what a caller checked is still so when it writes, unless it awaited between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from emulators.storage.database import open_database, transaction
from emulators.storage.errors import StorageError
from emulators.storage.extents import SCHEMA as EXTENTS_SCHEMA
from emulators.storage.extents import SMALL, Extents, Piece, Upload
from emulators.storage.leases import Lease

NONE = Lease()
STAGED_SECONDS = 7 * 24 * 3600  # after which blocks that no list took are gone
PURGED_AT_ONCE = 500
FEW_ROWS, ROWS_AT_ONCE = 16, 1000

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS containers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, facts TEXT);
CREATE TABLE IF NOT EXISTS dropped (container INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS blobs (
    container INTEGER, name TEXT, facts TEXT, content TEXT, PRIMARY KEY (container, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blocks (
    container INTEGER, name TEXT, id TEXT, size INTEGER, staged REAL, pieces TEXT,
    PRIMARY KEY (container, name, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blocks_by_age ON blocks (staged);
{EXTENTS_SCHEMA}"""


@dataclass(frozen=True)
class Container:
    """`policies`: the stored access policies, as the XML that set them."""

    id: int
    name: str
    etag: str
    modified: float
    metadata: dict[str, str]
    policies: str = ""
    lease: Lease = NONE


@dataclass(frozen=True)
class Blob:
    """`headers` are those of the content, by their names in an answer; `copy` says of what it is a copy."""

    kind: str
    size: int = 0
    etag: str = ""
    created: float = 0.0
    modified: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    tier: str = ""
    appended: int = 0
    copy: dict[str, str] = field(default_factory=dict)
    lease: Lease = NONE


@dataclass(frozen=True)
class Content:
    """A blob's bytes, and the blocks it was made of: id and size."""

    pieces: list[Piece] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A block that waits for its list."""

    id: str
    size: int
    pieces: list[Piece]


Listed = tuple[str, Blob | None]  # a blob, or a prefix of several


class Blobs:
    """The blobs of one account; `extents` holds their bytes."""

    def __init__(self, file: Path, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._db = open_database(file, SCHEMA)
        self.extents = Extents(self._db, folder)
        self.clock = clock
        self._ticks = 0

    def close(self) -> None:
        self._db.close()

    def new_etag(self) -> str:
        """One that no version had before."""
        self._ticks = max(self._ticks + 1, int(self.clock() * 1e7))
        return f"0x{self._ticks:X}"

    # Containers

    def container(self, name: str) -> Container:
        """Raises StorageError, 404, if there is none."""
        row = self._db.execute("SELECT id, facts FROM containers WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StorageError(404, "ContainerNotFound", "The specified container does not exist.")
        return _container(row[0], name, row[1])

    def create_container(self, name: str, metadata: dict[str, str]) -> Container:
        """Raises StorageError, 409, if it is there."""
        if self._db.execute("SELECT 1 FROM containers WHERE name = ?", (name,)).fetchone():
            raise StorageError(409, "ContainerAlreadyExists", "The specified container already exists.")
        made = Container(0, name, self.new_etag(), self.clock(), metadata)
        row = (name, _facts(made))
        number = self._db.execute("INSERT INTO containers (name, facts) VALUES (?, ?)", row).lastrowid
        return replace(made, id=number or 0)

    def change_container(self, changed: Container) -> None:
        self._db.execute("UPDATE containers SET facts = ? WHERE id = ?", (_facts(changed), changed.id))

    def delete_container(self, container: Container) -> None:
        """Remove it. Its blobs go from the file little by little, in `purge`."""
        with transaction(self._db):
            self._db.execute("DELETE FROM containers WHERE id = ?", (container.id,))
            self._db.execute("INSERT INTO dropped VALUES (?)", (container.id,))

    def containers(self, prefix: str, start: str, limit: int) -> list[Container]:
        """Those whose names have this prefix, from `start` on, in order."""
        found = self._db.execute(
            "SELECT id, name, facts FROM containers WHERE name >= ? AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?",
            (max(prefix, start), len(prefix), prefix, limit),
        )
        return [_container(*row) for row in found]

    # Blobs

    def find(self, container: int, name: str) -> Blob | None:
        row = self._db.execute("SELECT facts FROM blobs WHERE container = ? AND name = ?", (container, name)).fetchone()
        return _blob(row[0]) if row else None

    def content(self, container: int, name: str) -> Content:
        """What a blob that is there consists of."""
        (text,) = self._db.execute(
            "SELECT content FROM blobs WHERE container = ? AND name = ?", (container, name)
        ).fetchone()
        return _content(text)

    def write(self, container: int, name: str, blob: Blob, content: Content | Upload) -> None:
        """Make or replace a blob. The blocks that waited for its list are dropped."""
        with transaction(self._db):
            made = Content(self.extents.store(content)) if isinstance(content, Upload) else content
            self.extents.hold(made.pieces)
            self._let_go(container, name)
            self._drop_staged(container, name)
            row = (container, name, _facts(blob), json.dumps([made.pieces, made.blocks], separators=(",", ":")))
            self._db.execute("REPLACE INTO blobs VALUES (?, ?, ?, ?)", row)

    def append(self, container: int, name: str, blob: Blob, upload: Upload) -> None:
        """Put bytes behind those of an append blob, whose new facts are `blob`. Small ends are joined."""
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
                (_facts(blob), text, container, name),
            )

    def _joined(self, last: list[Piece], upload: Upload) -> Upload | None:
        """The last piece and what comes behind it as one, if both are small."""
        if not last or upload.data is None or last[0][2] + upload.size > SMALL:
            return None
        before = self.extents.at_once(last)
        return None if before is None else replace(upload, data=before + upload.data, size=len(before) + upload.size)

    def change(self, container: int, name: str, blob: Blob) -> None:
        """New facts of a blob that is there."""
        self._db.execute("UPDATE blobs SET facts = ? WHERE container = ? AND name = ?", (_facts(blob), container, name))

    def delete(self, container: int, name: str) -> None:
        with transaction(self._db):
            self._let_go(container, name)
            self._drop_staged(container, name)
            self._db.execute("DELETE FROM blobs WHERE container = ? AND name = ?", (container, name))

    # Blocks that wait for their list

    def stage(self, container: int, name: str, block: str, content: Upload | list[Piece]) -> None:
        with transaction(self._db):
            pieces = self.extents.store(content) if isinstance(content, Upload) else content
            self.extents.hold(pieces)
            before = self._db.execute(
                "DELETE FROM blocks WHERE container = ? AND name = ? AND id = ? RETURNING pieces",
                (container, name, block),
            ).fetchall()
            for (old,) in before:
                self.extents.let_go(_pieces(json.loads(old)))
            size = sum(piece[2] for piece in pieces)
            row = (container, name, block, size, self.clock(), json.dumps(pieces))
            self._db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", row)

    def staged(self, container: int, name: str) -> dict[str, Block]:
        """By their ids, in the order of these."""
        rows = self._db.execute(
            "SELECT id, size, pieces FROM blocks WHERE container = ? AND name = ? ORDER BY id", (container, name)
        )
        return {row[0]: Block(row[0], row[1], _pieces(json.loads(row[2]))) for row in rows}

    def length_of_ids(self, container: int, name: str) -> int | None:
        """How long the ids of its waiting blocks are; None if none waits."""
        row = self._db.execute(
            "SELECT length(id) FROM blocks WHERE container = ? AND name = ? LIMIT 1", (container, name)
        ).fetchone()
        return row[0] if row else None

    # Listing

    def listed(
        self, container: int, prefix: str, delimiter: str, start: str, limit: int, uncommitted: bool = False
    ) -> Iterator[Listed]:
        """At most `limit` blobs in the order of their names, from `start` on; those that have the delimiter behind the
        prefix are one entry for each name up to it. With `uncommitted` those too that have only blocks so far."""
        lowest, end = max(prefix, start), after(prefix)
        batch = FEW_ROWS if delimiter else ROWS_AT_ONCE
        while limit > 0:
            wanted = min(limit, batch)
            rows = self._rows(container, lowest, end, wanted, uncommitted)
            group = ""
            for name, facts in rows:
                limit -= 1
                at = name.find(delimiter, len(prefix)) if delimiter else -1
                if at >= 0:
                    group = name[: at + len(delimiter)]
                    yield group, None
                    break  # and on behind all that begin with it
                yield name, _blob(facts) if facts else Blob("BlockBlob")
            following = after(group) if group else rows[-1][0] + "\0" if len(rows) == wanted else None
            if following is None:
                return
            lowest, batch = following, FEW_ROWS if group else min(2 * batch, ROWS_AT_ONCE)

    def _rows(
        self, container: int, start: str, end: str | None, limit: int, uncommitted: bool
    ) -> list[tuple[str, str | None]]:
        below = "" if end is None else "AND name < :end"
        text = f"SELECT name, facts FROM blobs WHERE container = :container AND name >= :start {below}"  # noqa: S608
        if uncommitted:
            text += (
                f" UNION ALL SELECT DISTINCT name, NULL FROM blocks AS b WHERE container = :container"  # noqa: S608
                f" AND name >= :start {below} AND NOT EXISTS"
                " (SELECT 1 FROM blobs WHERE container = b.container AND name = b.name)"
            )
        values = {"container": container, "start": start, "end": end, "limit": limit}
        return self._db.execute(f"{text} ORDER BY name LIMIT :limit", values).fetchall()

    # The service's own settings

    def settings(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def set_settings(self, name: str, value: str) -> None:
        self._db.execute("REPLACE INTO settings VALUES (?, ?)", (name, value))

    # Removing

    def purge(self) -> bool:
        """Remove some of what deleted containers held, of blocks that no list took, and of bytes that nothing holds.

        Says whether there may be more.
        """
        with transaction(self._db):
            more = self._purge_dropped() | self._purge_staged()
        with transaction(self._db):
            return self.extents.purge() | more

    def _purge_dropped(self) -> bool:
        dropped = self._db.execute("SELECT container FROM dropped LIMIT 1").fetchone()
        if dropped is None:
            return False
        names = self._db.execute(
            "SELECT name FROM blobs WHERE container = ?1 UNION SELECT name FROM blocks WHERE container = ?1 LIMIT ?2",
            (*dropped, PURGED_AT_ONCE),
        ).fetchall()
        for (name,) in names:
            self._let_go(dropped[0], name)
            self._drop_staged(dropped[0], name)
            self._db.execute("DELETE FROM blobs WHERE container = ? AND name = ?", (*dropped, name))
        if not names:
            self._db.execute("DELETE FROM dropped WHERE container = ?", dropped)
        return True

    def _purge_staged(self) -> bool:
        old = self._db.execute(
            "SELECT container, name FROM blocks WHERE staged < ? LIMIT ?",
            (self.clock() - STAGED_SECONDS, PURGED_AT_ONCE),
        ).fetchall()
        for container, name in old:
            self._drop_staged(container, name)
        return bool(old)

    def _let_go(self, container: int, name: str) -> None:
        row = self._db.execute(
            "SELECT content FROM blobs WHERE container = ? AND name = ?", (container, name)
        ).fetchone()
        if row:
            self.extents.let_go(_content(row[0]).pieces)

    def _drop_staged(self, container: int, name: str) -> None:
        rows = self._db.execute(
            "DELETE FROM blocks WHERE container = ? AND name = ? RETURNING pieces", (container, name)
        ).fetchall()
        for (pieces,) in rows:
            self.extents.let_go(_pieces(json.loads(pieces)))


def after(prefix: str) -> str | None:
    """The least text above all that begin with this prefix; None if there is none."""
    while prefix:
        last = ord(prefix[-1]) + 1
        if last <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if last == 0xD800 else last)
        prefix = prefix[:-1]
    return None


def _facts(thing: Blob | Container) -> str:
    """What there is to say of it, without what is as in every new one."""
    facts: dict[str, Any] = {key: value for key, value in vars(thing).items() if value and key not in ("id", "name")}
    lease = facts.pop("lease")
    return json.dumps(facts | ({"lease": asdict(lease)} if lease.id else {}), separators=(",", ":"))


def _container(number: int, name: str, text: str) -> Container:
    facts = json.loads(text)
    lease = Lease(**facts.pop("lease", {}))
    return Container(number, name, **{"metadata": {}, **facts}, lease=lease)


def _blob(text: str) -> Blob:
    facts = json.loads(text)
    lease = facts.pop("lease", None)
    return Blob(**facts, lease=Lease(**lease)) if lease else Blob(**facts)


def _content(text: str) -> Content:
    pieces, blocks = json.loads(text)
    return Content(_pieces(pieces), [(block, size) for block, size in blocks])


def _pieces(found: Iterable[list[int]]) -> list[Piece]:
    return [(extent, offset, length) for extent, offset, length in found]
