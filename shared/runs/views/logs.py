"""The logs of a run's ranks, while they grow and from the archive. Each job of an elastic run's member is a rank.

To follow a log, request it again with the offset of the previous response. No byte is lost: the archived log has the
same bytes, so an offset stays valid. `complete` is reported only for an archived run. Archiving happens after the job
has ended and its logs were copied, so a complete log includes its last line.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from dataclasses import dataclass

from shared.runs.ports import RunPorts
from shared.runs.results.rank_log import rank_log

CHUNK = 1 << 20  # bytes per response
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0  # seconds between checks for more bytes


@dataclass(frozen=True)
class Chunk:
    """Bytes of a log starting at `offset`.

    `complete`: the log ends with these bytes. `size`: the log's current size.
    """

    data: bytes
    offset: int
    size: int
    complete: bool
    ranks: list[int]

    @property
    def next_offset(self) -> int:
        return self.offset + len(self.data)


async def follow(ports: RunPorts, name: str, rank: int, offset: int, wait: float) -> Chunk:
    """A rank's log from an offset on, after waiting up to `wait` seconds for more bytes.

    This is a coroutine because a hundred waiting readers must not block a hundred threads of the other functions.
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
    """Up to `limit` bytes of a rank's log; empty if there are none yet. Raises NotFound for an unknown run.

    With `cut`, the bytes never end inside a character, unless the log itself does.
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
    """Bytes of a rank's log from `first` to `last` (inclusive), like HTTP's Range, at most CHUNK bytes.

    Without `first`: the final `last` bytes. Without `last`: up to the end. Characters may be split. A chunk without
    data means that the range is empty; the chunk's size is the log's size.
    """
    first, last = byte_range
    if first is None:
        size = (await asyncio.to_thread(read, ports, name, rank, 1 << 60)).size
        first, last = max(0, size - (last or 0)), None
    length = CHUNK if last is None else min(CHUNK, last - first + 1)
    return await asyncio.to_thread(read, ports, name, rank, first, length, cut=False)


def whole_characters(data: bytes) -> bytes:
    """The data without an incomplete UTF-8 character at the end. Bytes outside UTF-8 stay."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[: len(data) - pending]
