"""The logs of a run's ranks, while they grow and from its archive. A job of an elastic run's member counts as a rank.

Whoever follows a log asks again with the offset that the last answer gave. That loses nothing: an offset is a place in
the log, wherever it lies; the archive holds the same bytes. And it is complete only when the run is archived, which
it is after its job ended and its logs were copied; so the last line is there when an answer says so.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from dataclasses import dataclass, field
from typing import Protocol

from shared.jobs.ports import HasJobs
from shared.kernel.errors import NotFound
from shared.kernel.has import HasBlobs
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.model import Run
from shared.runs.ports import HasRuns
from shared.runs.progress.workloads import workload
from shared.runs.results.archive import archive_folder

CHUNK = 1 << 20  # bytes in one answer
RANKS_LISTED = 1000
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0  # seconds between looks for more
_FILE = re.compile(r"std_log(?:_process_(?P<rank>\d+))?\.txt")  # Azure ML's names; the only process has no number


class Ports(HasBlobs, HasJobs, HasRuns, Protocol):
    """What is needed here from outside."""


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


@dataclass(frozen=True)
class _Log:
    """A rank's log as it is now, and the ranks that have one. `whole`: it won't grow any more."""

    container: str
    whole: bool
    blob: Blob | None = None
    ranks: list[int] = field(default_factory=list)


async def follow(ports: Ports, name: str, rank: int, offset: int, wait: float) -> Chunk:
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


def read(ports: Ports, name: str, rank: int, offset: int, limit: int = CHUNK, cut: bool = True) -> Chunk:
    """Up to `limit` bytes of a rank's log; none where nothing is yet. Raises NotFound for an unknown run.

    Never ends inside a character, if `cut`, unless the log itself does.
    """
    log = _log(ports, ports.runs.get(name).value, rank)
    blob = log.blob
    if blob is None or offset >= blob.size:
        return Chunk(b"", offset, blob.size if blob else 0, log.whole, log.ranks)
    data = ports.blobs.read_from(log.container, blob.name, offset, min(limit, blob.size - offset))
    ends = log.whole and offset + len(data) >= blob.size
    if cut and not ends:
        data = whole_characters(data)
    return Chunk(data, offset, blob.size, ends, log.ranks)


async def ranged(ports: Ports, name: str, rank: int, byte_range: tuple[int | None, int | None]) -> Chunk:
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


def _log(ports: Ports, run: Run, rank: int) -> _Log:
    how, archived = workload(run), run.archive.at is not None
    ranks = how.ranks(run)
    if (job_and_number := how.log_of(run, rank)) is None:
        return _Log("", archived, None, ranks or [])
    job, number = job_and_number
    if archived:
        place = Place(OUTPUT_CONTAINER, f"{archive_folder(run)}/{how.log_folder(run, job)}")
    else:
        try:
            live = ports.jobs.logs(job)
        except NotFound:  # a workspace without the datastore that holds them
            return _Log("", whole=False)
        place = Place(live.container, f"{live.prefix}user_logs/")
    files = _by_rank(ports.blobs, place)
    return _Log(place.container, archived, files.get(number), sorted(files) if ranks is None else ranks)


def _by_rank(blobs: Blobs, place: Place) -> dict[int, Blob]:
    blobs_by_rank = {}
    for blob, _ in zip(blobs.list(place), range(RANKS_LISTED), strict=False):
        if match := _FILE.fullmatch(blob.name.removeprefix(place.prefix)):
            blobs_by_rank[int(match["rank"] or 0)] = blob
    return blobs_by_rank
