"""The content of a drop's folder: blobs, and the survey from one listing."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

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
BUDGET = timedelta(minutes=2)  # for the listing by one message; another message continues
MANY = 1_000_000  # files; listing this many takes seconds to minutes
_LOOKED_EVERY = 100  # files


class ListingTooLong(Unavailable):
    """A folder was not listed within PATIENCE; `seen` is the number of listed files."""

    def __init__(self, seen: int) -> None:
        minutes = PATIENCE // timedelta(minutes=1)
        super().__init__(f"Its files could not be listed within {minutes} minutes; {seen:,} were found by then.")
        self.seen = seen


T = TypeVar("T")


def in_time(blobs: Iterable[T], clock: Callable[[], datetime]) -> Iterator[T]:
    """Yield the blobs unchanged. Raises ListingTooLong when the listing takes longer than PATIENCE."""
    until = clock() + PATIENCE
    for number, blob in enumerate(blobs):
        if number % _LOOKED_EVERY == 0 and clock() > until:
            raise ListingTooLong(number)
        yield blob


def drop_blobs(blobs: Blobs, key: DropKey) -> Iterator[Blob]:
    """The drop's blobs: the blobs in its folder, or the single blob with the drop's exact name."""
    inside = blobs.list(Place(DROPS_CONTAINER, key.prefix()))
    first = next(inside, None)
    if first is not None:
        return itertools.chain([first], inside)
    return _exact(blobs, key)


def _exact(blobs: Blobs, key: DropKey) -> Iterator[Blob]:
    blob = blobs.first(Place(DROPS_CONTAINER, str(key)))
    return iter([blob] if blob is not None and blob.name == str(key) else [])


@dataclass(frozen=True)
class Survey:
    """The result of listing a drop.

    `fingerprint` is a hash over (name, MD5 or etag, size) of the blobs in listing order, without the `_SUCCESS` marker.

    The etag replaces an unknown MD5 (of a blob that was written in several blocks without an MD5). The same bytes
    uploaded again in one request therefore keep the fingerprint; an upload in several requests changes it.
    """

    fingerprint: str
    blobs: int
    bytes: int
    data_blobs: int
    newest: datetime | None
    markers: Mapping[str, Blob]
    single_file: bool
    problem: str | None
    owner: str = ""  # the uploader, from the metadata of the marker or else of the newest file


@dataclass
class SoFar:
    """The survey of the listed blobs, after a multiple of MANY, for another process to continue.

    `chain` hashes the fingerprints of each MANY blobs, counted without `_SUCCESS`. `page` is the token of the page that
    contains `last`, a blob's name.
    """

    page: str = ""
    last: str = ""
    chain: str = ""
    hashed: int = 0
    blobs: int = 0
    bytes: int = 0
    data_blobs: int = 0
    newest: datetime | None = None
    markers: dict[str, Blob] = field(default_factory=dict)
    single_file: bool = False
    problem: str | None = None
    owner: str = ""


def survey(key: DropKey, blobs: Iterable[Blob]) -> Survey:
    """Survey the blobs in bounded memory. The service lists blobs in the same order at every call."""
    look = _Survey(key, SoFar())
    for blob in blobs:
        look.at(blob, "")
    return look.whole()


def survey_in_time(
    blobs: Blobs, key: DropKey, clock: Callable[[], datetime], told: SoFar, seen: Callable[[Blob], object]
) -> Survey | SoFar:
    """The survey, or the progress after BUDGET, or when MANY more blobs would take longer than PATIENCE.

    The survey continues after `told`, and calls `seen` with each blob. Raises ListingTooLong if no progress was
    possible.
    """
    look, began, saved = _Survey(key, told), clock(), told
    pages = blobs.paged(Place(DROPS_CONTAINER, key.prefix()), told.page)
    ahead = (each for each in pages if each[1].name.encode() > told.last.encode())
    try:
        for page, blob in _of_drop(blobs, key, told, in_time(ahead, clock)):
            seen(blob)
            if look.at(blob, page):
                saved = look.so_far()
                if clock() - began > BUDGET:
                    return saved
    except ListingTooLong:
        if saved is told:
            raise
        return saved
    return look.whole()


def _of_drop(blobs: Blobs, key: DropKey, told: SoFar, inside: Iterator[tuple[str, Blob]]) -> Iterator[tuple[str, Blob]]:
    first = next(inside, None)
    if first is not None or told.blobs:
        return itertools.chain([first] if first else [], inside)
    return (("", blob) for blob in _exact(blobs, key))


class _Survey:
    """A survey in progress."""

    def __init__(self, key: DropKey, told: SoFar) -> None:
        self._key, self._told = key, replace(told, markers={**told.markers})
        self._digest = hashlib.sha256()

    def at(self, blob: Blob, page: str) -> bool:
        """Add the blob to the survey. True after each MANY blobs."""
        if blob.metadata.get("hdi_isfolder") == "true":
            return False  # how a storage account with a hierarchical namespace shows a folder
        so_far, key = self._told, self._key
        path = blob.name.removeprefix(key.prefix()) if blob.name != str(key) else ""
        so_far.single_file = not path
        is_content = path != SUCCESS_MARKER  # the marker says "complete" and is not content
        if is_content:
            self._digest.update(f"{blob.name}\0{blob.md5 or blob.etag.strip(chr(34))}\0{blob.size}\n".encode())
            so_far.hashed += 1
        so_far.blobs, so_far.bytes = so_far.blobs + 1, so_far.bytes + blob.size
        if blob.last_modified is not None and (so_far.newest is None or blob.last_modified >= so_far.newest):
            so_far.newest, so_far.owner = blob.last_modified, owner_of(blob) or so_far.owner
        if path in (SUCCESS_MARKER, *JOB_FILES):
            so_far.markers[path] = replace(blob, metadata={})
        else:
            so_far.data_blobs += 1
            so_far.problem = so_far.problem or (path_problem(path) if path else None)
        if so_far.hashed % MANY or not is_content:
            return False
        so_far.page, so_far.last, so_far.chain = page, blob.name, self._fingerprint()
        self._digest = hashlib.sha256()
        return True

    def so_far(self) -> SoFar:
        return replace(self._told, markers={**self._told.markers})

    def whole(self) -> Survey:
        so_far = self._told
        return Survey(
            so_far.chain if so_far.hashed and so_far.hashed % MANY == 0 else self._fingerprint(),
            so_far.blobs,
            so_far.bytes,
            so_far.data_blobs,
            so_far.newest,
            so_far.markers,
            so_far.single_file,
            so_far.problem,
            so_far.owner,
        )

    def _fingerprint(self) -> str:
        """The fingerprint of the blobs since the last multiple of MANY, chained to all earlier blobs."""
        own = self._digest.hexdigest()
        return hashlib.sha256(f"{self._told.chain}\n{own}".encode()).hexdigest() if self._told.chain else own


def owner_of(blob: Blob) -> str:
    """The blob's uploader, self-reported; '' if not given. Metadata is ASCII, so the name is percent-encoded."""
    return one_line(blob.metadata.get(OWNER, "")[:OWNER_LIMIT])
