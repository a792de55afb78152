"""What lies in a drop's folder: its blobs, and what one listing of them shows."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Unavailable
from shared.kernel.names import path_problem
from shared.kernel.parsing import one_line
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place

JOB_FILES = ("job.yaml", "job.yml", "job.json")
SUCCESS_MARKER = "_SUCCESS"
OWNER = "trainyard_owner"  # metadata of uploaded blobs: who uploads, percent-encoded
OWNER_LIMIT = 256
PATIENCE = timedelta(minutes=4)  # for one listing; functionTimeout, 10 minutes, ends the worker
MANY = 1_000_000  # files; so many are listed within seconds to minutes
_LOOKED_EVERY = 100  # files


class ListingTooLong(Unavailable):
    """A folder was not listed within PATIENCE; `seen` says how many files were."""

    def __init__(self, seen: int) -> None:
        minutes = PATIENCE // timedelta(minutes=1)
        super().__init__(f"Its files could not be listed within {minutes} minutes; {seen:,} were seen by then.")
        self.seen = seen


def in_time(blobs: Iterable[Blob], clock: Callable[[], datetime]) -> Iterator[Blob]:
    """The same blobs. Raises ListingTooLong rather than go on for longer than PATIENCE."""
    until = clock() + PATIENCE
    for number, blob in enumerate(blobs):
        if number % _LOOKED_EVERY == 0 and clock() > until:
            raise ListingTooLong(number)
        yield blob


def drop_blobs(blobs: Blobs, key: DropKey) -> Iterator[Blob]:
    """The drop's blobs: those in its folder, or the one that has its very name."""
    inside = blobs.list(Place(DROPS_CONTAINER, key.prefix()))
    first = next(inside, None)
    if first is not None:
        return itertools.chain([first], inside)
    exact = blobs.first(Place(DROPS_CONTAINER, str(key)))
    return iter([exact] if exact is not None and exact.name == str(key) else [])


@dataclass(frozen=True)
class Survey:
    """What a listing of a drop shows.

    `fingerprint` is over (name, MD5 or etag, size) of its blobs in listing order, but for the `_SUCCESS` marker.

    The etag stands in where the service knows no MD5 (a blob of several blocks, written without one). So the same bytes
    uploaded again in one request give the same fingerprint, in many requests a new one.
    """

    fingerprint: str
    blobs: int
    bytes: int
    data_blobs: int
    newest: datetime | None
    markers: Mapping[str, Blob]
    single_file: bool
    problem: str | None
    owner: str = ""  # who uploaded it, as the marker or else the newest file's metadata says


def survey(key: DropKey, blobs: Iterable[Blob]) -> Survey:
    """Look at each blob once, in bounded memory. The listing's order is the service's, the same at every call."""
    digest, count, size, data, newest, problem, single = hashlib.sha256(), 0, 0, 0, None, None, False
    markers: dict[str, Blob] = {}
    owner = ""
    for blob in blobs:
        if blob.metadata.get("hdi_isfolder") == "true":
            continue  # how a storage account with a hierarchical namespace shows a folder
        path = blob.name.removeprefix(key.prefix()) if blob.name != str(key) else ""
        single = not path
        if path != SUCCESS_MARKER:  # it says "complete", and is no content
            digest.update(f"{blob.name}\0{blob.md5 or blob.etag.strip(chr(34))}\0{blob.size}\n".encode())
        count, size = count + 1, size + blob.size
        if blob.last_modified is not None:
            newer = newest is None or blob.last_modified >= newest
            newest, owner = (blob.last_modified, owner_of(blob) or owner) if newer else (newest, owner)
        if path in (SUCCESS_MARKER, *JOB_FILES):
            markers[path] = blob
        else:
            data += 1
            problem = problem or (path_problem(path) if path else None)
    return Survey(digest.hexdigest(), count, size, data, newest, markers, single, problem, owner)


def owner_of(blob: Blob) -> str:
    """Who uploaded the blob, as whoever did says; '' for nobody. Metadata is ASCII, so the name is percent-encoded."""
    return one_line(blob.metadata.get(OWNER, "")[:OWNER_LIMIT])
