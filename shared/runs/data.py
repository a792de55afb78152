"""Which data a run was made for, and whether it found them when it started.

The list of a drop's blobs is kept beside the run's archive (`data.json.gz`: name, etag, size and MD5 of each, in
listing order) when the drop is sealed. When the run's job starts, the drop is listed once more: a queued run trains on
whatever its folder holds by then, so what differs is said on the run, in the write that says that it runs. A drop of
many blobs is compared after that, by a message.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed, NotFound, TrainyardError
from shared.kernel.has import HasBlobs, HasClock
from shared.kernel.parsing import read_json
from shared.kernel.places import OUTPUT_CONTAINER, RUN_LOOKS
from shared.kernel.storage import Blob, Blobs, Queues
from shared.runs.content import SUCCESS_MARKER, ListingTooLong, drop_blobs, in_time, survey
from shared.runs.model import Run
from shared.runs.ports import HasRuns

LISTING = "data.json.gz"
MOST_LISTED = 100_000  # blobs; of a larger drop the fingerprint tells whether it changed, but not what
COMPARED_AT_ONCE = 1000  # blobs; some milliseconds
NAMED = 5  # names in a sentence
_LIMIT = 64 << 20  # bytes of a listing as it is stored
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say gzip
WRITE_ATTEMPTS = 10
log = logging.getLogger(__name__)


class Ports(HasBlobs, HasClock, HasRuns, Protocol):
    """What is needed here from outside."""


class Listing:
    """A list of blobs as compressed JSON, some 40 bytes each, filled while they are listed."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)
        self._packed = bytearray()
        self.count = 0

    def through(self, blobs: Iterable[Blob]) -> Iterator[Blob]:
        for blob in blobs:
            if self.count < MOST_LISTED:
                row = json.dumps([blob.name, blob.etag.strip('"'), blob.size, blob.md5])
                self._packed += self._packer.compress(f"{',' if self.count else '['}\n{row}".encode())
            elif self._packed:
                self._packed.clear()
            self.count += 1
            yield blob

    def data(self) -> bytes | None:
        """The list, or None if it would be too long."""
        if self.count > MOST_LISTED:
            return None
        return bytes(self._packed) + self._packer.compress(b"\n]" if self.count else b"[]") + self._packer.flush()


def keep_listing(blobs: Blobs, folder: str, listing: Listing) -> None:
    """Write the list beside the archive that the run will have, once: the manifest tells its size and etag."""
    if data := listing.data():
        blobs.write_once(OUTPUT_CONTAINER, f"{folder}/{LISTING}", data, "application/gzip")


def difference_at_start(ports: Ports, run: Run) -> str | None:
    """How the data of a starting run differ from those it was made for; None if checking takes long or is not
    possible now."""
    if not (run.asked.drop and run.asked.fingerprint):
        return ""
    try:
        blobs = list(islice(drop_blobs(ports.blobs, DropKey.of(run.asked.drop)), COMPARED_AT_ONCE + 1))
        return _difference(ports, run, blobs) if len(blobs) <= COMPARED_AT_ONCE else None
    except TrainyardError as exc:
        log.info("run %s: its data are compared later: %s", run.name, exc)
        return None


def ask_for_check(queues: Queues, run: Run) -> None:
    """Ask for a look at the data of a run that has just started."""
    queues.send(RUN_LOOKS, {"data_of": run.name})


def check_data(ports: Ports, name: str) -> None:
    """Note on the run if its drop's content differs from what the run was made for. A repeat changes nothing."""
    try:
        stored = ports.runs.recent(name)
    except NotFound:
        return
    run = stored.value
    blobs = in_time(drop_blobs(ports.blobs, DropKey.of(run.asked.drop)), ports.clock)
    try:
        note = _difference(ports, run, blobs)
    except ListingTooLong as exc:
        note = f"Whether drop {run.asked.drop} changed before the job started is not known. {exc}"
    for _ in range(WRITE_ATTEMPTS):
        if stored.value.progress.data_note == note:
            return
        try:
            ports.runs.update(stored, data_note=note)
        except Changed:
            stored = ports.runs.get(name)
        else:
            return
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while its data were checked.")


def _difference(ports: Ports, run: Run, blobs: Iterable[Blob]) -> str:
    now: dict[str, str] = {}
    seen = survey(DropKey.of(run.asked.drop), _told(blobs, now))
    if seen.fingerprint == run.asked.fingerprint:
        return ""
    words = f"Drop {run.asked.drop} held other data when the job started than when the run was made"
    before = _kept(ports.blobs, f"{run.asked.experiment}/{run.name}")
    if not before or len(now) > MOST_LISTED:
        return f"{words}."
    differing = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
    return f"{words}: {', '.join(differing[:NAMED])}{more}." if differing else f"{words}."


def _told(blobs: Iterable[Blob], content_by_name: dict[str, str]) -> Iterator[Blob]:
    for blob in blobs:
        if len(content_by_name) <= MOST_LISTED and not blob.name.endswith(f"/{SUCCESS_MARKER}"):
            content_by_name[blob.name] = blob.md5 or blob.etag.strip('"')
        yield blob


def _kept(blobs: Blobs, folder: str) -> dict[str, str]:
    """Name and MD5 (or etag) of the blobs that the run was made for; none if no list was kept."""
    return {
        blob.name: blob.md5 or blob.etag
        for blob in kept_listing(blobs, folder) or ()
        if not blob.name.endswith(f"/{SUCCESS_MARKER}")
    }


def kept_listing(blobs: Blobs, folder: str) -> list[Blob] | None:
    """The blobs of the list that was kept in this folder of the output container; None if there is none."""
    try:
        packed = blobs.read(OUTPUT_CONTAINER, f"{folder}/{LISTING}", _LIMIT)
    except NotFound:
        return None
    rows = islice(read_json(zlib.decompress(packed, _GZIP), LISTING), MOST_LISTED)
    return [Blob(name, etag, size, md5) for name, etag, size, md5 in rows]
