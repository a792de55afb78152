"""The storage of blobs' bytes in extents, which are written once and shared by copies of a blob.

A small extent is in the SQLite file, so that writing a small blob is one transaction. A larger extent is a file. The
number of blobs and blocks that use an extent is stored with the extent. `purge` removes extents without references,
including half-written extents of a killed process. Extents that are being written or read are pinned meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

SMALL = 64 * 1024  # bytes of an extent in the SQLite file
AT_ONCE = 1024 * 1024  # bytes of one write or read in a thread
PURGED_AT_ONCE = 500
READ_AT_ONCE = 200  # small extents

SCHEMA = """
CREATE TABLE IF NOT EXISTS extents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL, refs INTEGER NOT NULL DEFAULT 0, data BLOB);
CREATE INDEX IF NOT EXISTS unheld ON extents (id) WHERE refs = 0;
"""

Piece = tuple[int, int, int]  # extent, offset, length; an extent of 0 or less is a hole, all zeros


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


@dataclass(frozen=True)
class Upload:
    """Received bytes: a few bytes are in `data`, more are already stored in the extent `extent`."""

    size: int
    md5: bytes
    data: bytes | None = None
    extent: int = 0


class Extents:
    """The extents of one account: small ones in its database, large ones in files under `folder`."""

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._pins = Counter[int]()

    # Writing

    async def receive(self, source: AsyncIterator[bytes], *more: Digest) -> Upload:
        """Receive bytes from a stream, and feed them to the digests. The next `purge` removes the bytes unless
        `store` is called before."""
        md5, size, waiting = hashlib.md5(usedforsecurity=False), 0, bytearray()
        digests = (md5, *more)
        with contextlib.ExitStack() as stack:
            file: BinaryIO | None = None
            extent = 0
            async for part in source:
                waiting += part
                size += len(part)
                if file is None and size > SMALL:
                    extent = self._new(stack)
                    file = stack.enter_context(self._opened(extent))
                if file is not None and len(waiting) >= AT_ONCE:
                    await asyncio.to_thread(_write, file, bytes(waiting), digests)
                    waiting.clear()
            if file is None:
                _update(digests, bytes(waiting))
                return Upload(size, md5.digest(), bytes(waiting))
            await asyncio.to_thread(_write, file, bytes(waiting), digests)
            return Upload(size, md5.digest(), None, extent)

    def _new(self, stack: contextlib.ExitStack) -> int:
        extent = self._db.execute("INSERT INTO extents (size) VALUES (0)").lastrowid or 0
        stack.enter_context(self.pinned([extent]))
        return extent

    def _opened(self, extent: int) -> BinaryIO:
        path = self._path(extent)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path.open("wb", buffering=0)  # closed by the stack

    def store(self, upload: Upload) -> list[Piece]:
        """Store an upload, and return its pieces, which no row refers to yet. Must run in a transaction."""
        if not upload.size:
            return []
        if upload.data is None:
            self._db.execute("UPDATE extents SET size = ? WHERE id = ?", (upload.size, upload.extent))
            return [(upload.extent, 0, upload.size)]
        row = (upload.size, upload.data)
        extent = self._db.execute("INSERT INTO extents (size, data) VALUES (?, ?)", row).lastrowid or 0
        return [(extent, 0, upload.size)]

    def hold(self, pieces: Iterable[Piece], instead_of: Iterable[Piece] = ()) -> None:
        """Count one more reference to the extents of `pieces`, and one fewer to those of `instead_of`. Must run in
        a transaction."""
        counts = Counter(piece[0] for piece in pieces)
        counts.subtract(piece[0] for piece in instead_of)
        changes = [(count, extent) for extent, count in counts.items() if count]
        self._db.executemany("UPDATE extents SET refs = refs + ? WHERE id = ?", changes)

    def let_go(self, pieces: Iterable[Piece]) -> None:
        self.hold((), instead_of=pieces)

    # Reading

    def at_once(self, pieces: Iterable[Piece]) -> bytes | None:
        """Return the bytes of at most two pieces that are in the database or are short holes, otherwise None."""
        found: list[bytes] = []
        for extent, offset, length in pieces:
            if len(found) == 2 or (extent <= 0 and length > SMALL):
                return None
            data = self._inline(extent) if extent > 0 else bytes(length)
            if data is None:
                return None
            found.append(data[offset : offset + length] if extent > 0 else data)
        return b"".join(found)

    async def read(self, pieces: list[Piece]) -> AsyncGenerator[bytes, None]:
        """Yield the bytes in parts of at most AT_ONCE. The generator must be closed; the extents stay pinned until
        then."""
        with self.pinned([piece[0] for piece in pieces]):
            waiting = bytearray()  # small extents are sent together
            for number, (extent, offset, length) in enumerate(_short_holes(pieces), 1):
                data = self._inline(extent) if extent > 0 else bytes(length)
                if data is not None:
                    waiting += data[offset : offset + length] if extent > 0 else data
                if waiting and (data is None or len(waiting) >= AT_ONCE):
                    yield bytes(waiting)
                    waiting.clear()
                if data is None:
                    async with contextlib.aclosing(self._from_file(extent, offset, length)) as parts:
                        async for part in parts:
                            yield part
                elif number % READ_AT_ONCE == 0:
                    await asyncio.sleep(0)  # let other requests run
            if waiting:
                yield bytes(waiting)

    async def _from_file(self, extent: int, offset: int, length: int) -> AsyncGenerator[bytes, None]:
        with self._path(extent).open("rb", buffering=0) as file:
            for begin in range(offset, offset + length, AT_ONCE):
                wanted = min(AT_ONCE, offset + length - begin)
                yield await asyncio.to_thread(os.pread, file.fileno(), wanted, begin)

    @contextlib.contextmanager
    def pinned(self, extents: list[int]) -> Iterator[None]:
        self._pins.update(extents)
        try:
            yield
        finally:
            self._pins.subtract(extents)
            for extent in set(extents):
                if not self._pins[extent]:
                    del self._pins[extent]

    def _inline(self, extent: int) -> bytes | None:
        (data,) = self._db.execute("SELECT data FROM extents WHERE id = ?", (extent,)).fetchone()
        return data if data is None else bytes(data)

    # Removing

    def purge(self) -> bool:
        """Remove some extents without references. Returns whether there may be more."""
        rows = self._db.execute(
            "SELECT id, data IS NULL FROM extents WHERE refs = 0 LIMIT ?", (PURGED_AT_ONCE + len(self._pins),)
        ).fetchall()
        unheld = [(extent, is_file) for extent, is_file in rows if extent not in self._pins]
        for extent, is_file in unheld:
            if is_file:
                self._path(extent).unlink(missing_ok=True)
        self._db.executemany("DELETE FROM extents WHERE id = ?", [(extent,) for extent, _ in unheld])
        return len(unheld) >= PURGED_AT_ONCE

    def _path(self, extent: int) -> Path:
        return self._folder / f"{extent % 256:02x}" / str(extent)


def _update(digests: Iterable[Digest], data: bytes) -> None:
    for digest in digests:
        digest.update(data)


def _write(file: BinaryIO, data: bytes, digests: Iterable[Digest]) -> None:
    _update(digests, data)
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _short_holes(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces, with long holes cut into parts of AT_ONCE bytes."""
    for extent, offset, length in pieces:
        if extent > 0:
            yield extent, offset, length
            continue
        for begin in range(0, length, AT_ONCE):
            yield extent, 0, min(AT_ONCE, length - begin)


def part_of(pieces: Iterable[Piece], offset: int, length: int) -> list[Piece]:
    """Return the pieces in a range of bytes."""
    found = []
    for extent, begin, size in pieces:
        skipped = min(offset, size)
        taken = min(length, size - skipped)
        if taken:
            found.append((extent, begin + skipped, taken))
        offset, length = offset - skipped, length - taken
    return found
