"""The logs of a run's ranks, while they grow and from its archive. A job of an elastic run's member counts as a rank.

Whoever follows a log asks again with the offset that the last answer gave. That loses nothing: an offset is a place in
the log, wherever it lies; the archive holds the same bytes. And it is complete only when the run is archived, which
it is after its job ended and its logs were copied; so the last line is there when an answer says so.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from dataclasses import dataclass

from shared.runs.ports import RunPorts
from shared.runs.results.rank_log import rank_log

CHUNK = 1 << 20  # bytes in one answer
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0  # seconds between looks for more


@dataclass(frozen=True)
class Chunk:
    """Bytes of a log from `offset` on. `complete`: the log ends with them. `size` is what it has by now."""

    data: bytes
    offset: int
    size: int
    complete: bool
    ranks: list[int]

    @property
    def next_offset(self) -> int:
        return self.offset + len(self.data)


async def follow(ports: RunPorts, name: str, rank: int, offset: int, wait: float) -> Chunk:
    """A rank's log from an offset on, waiting up to `wait` seconds for more.

    A coroutine, because a hundred waiting readers must not take a hundred threads from the other functions.
    """
    deadline, pause = time.monotonic() + wait, FIRST_PAUSE
    while True:
        chunk = await asyncio.to_thread(read, ports, name, rank, offset)
        left = deadline - time.monotonic()
        if chunk.data or chunk.complete or left <= 0:
            return chunk
        await asyncio.sleep(min(pause, left))
        pause = min(1.5 * pause, LONGEST_PAUSE)


def read(ports: RunPorts, name: str, rank: int, offset: int, limit: int = CHUNK, cut: bool = True) -> Chunk:
    """Up to `limit` bytes of a rank's log; none where nothing is yet. Raises NotFound for an unknown run.

    Never ends inside a character, if `cut`, unless the log itself does.
    """
    log = rank_log(ports.jobs, ports.blobs, ports.runs.get(name).value, rank)
    blob = log.blob
    if blob is None or offset >= blob.size:
        return Chunk(b"", offset, blob.size if blob else 0, log.whole, log.ranks)
    data = ports.blobs.read_from(log.container, blob.name, offset, min(limit, blob.size - offset))
    ends = log.whole and offset + len(data) >= blob.size
    if cut and not ends:
        data = whole_characters(data)
    return Chunk(data, offset, blob.size, ends, log.ranks)


async def ranged(ports: RunPorts, name: str, rank: int, byte_range: tuple[int | None, int | None]) -> Chunk:
    """The bytes from first to last (both counted) of a rank's log, as HTTP's Range means them, at most CHUNK of them.

    No first: the last so many bytes. No last: to the end. Nothing is cut for the sake of characters. A chunk without
    data says that there is no such range; its size says what there is.
    """
    first, last = byte_range
    if first is None:
        size = (await asyncio.to_thread(read, ports, name, rank, 1 << 60)).size
        first, last = max(0, size - (last or 0)), None
    length = CHUNK if last is None else min(CHUNK, last - first + 1)
    return await asyncio.to_thread(read, ports, name, rank, first, length, cut=False)


def whole_characters(data: bytes) -> bytes:
    """The data without the beginning of a UTF-8 character at their end. Bytes that are no UTF-8 stay."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[: len(data) - pending]
