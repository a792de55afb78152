"""The ports of the storage account's blobs and queues.

shared/adapters implements them with Azure, tests/fakes/ports.py in memory; both pass the same contract suite. Each
method says what happens when it is called twice, late, or on something finished. All of them may raise
errors.Unavailable; the caller's message is then retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shared.kernel.message import Message


@dataclass(frozen=True)
class Blob:
    """One blob in a listing. `md5` is lower-case hex, or empty if unknown to the service."""

    name: str
    etag: str
    size: int
    md5: str = ""
    last_modified: datetime | None = None
    metadata: dict[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Sent:
    """A message on its queue, addressable by the sender."""

    id: str
    receipt: str


class Queues(Protocol):
    """Storage queues with JSON messages. Delivery is at least once and unordered."""

    def send(self, message: Message, delay: float = 0.0) -> Sent:
        """Put a message in its queue, invisible for `delay` seconds (longer delays are shortened to 7 days)."""

    def put(self, queue: str, text: str) -> None:
        """Put a text in a queue unchanged: an event of another service, or a message from elsewhere."""

    def withdraw(self, queue: str, sent: Sent) -> None:
        """Delete a message that was sent. Nothing happens if another process has received or deleted the message
        since.
        """

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        """Return the approximate number of messages in each queue; 0 for a queue that does not exist."""

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        """Return the age in seconds of the first visible message of each queue, including the message's delay; 0 for an
        empty queue.
        """

    def give_back(self, source: str, target: str, limit: int) -> int:
        """Move up to `limit` messages from one queue to another; return how many were moved.

        A message is written to the target before it is deleted from the source, so a crash can duplicate but never lose
        it. Messages that another process has just received stay.
        """

    def clear(self, queue: str, done: Callable[[str], bool], limit: int) -> int:
        """Check up to `limit` messages and delete those whose text is `done`; return how many were deleted.

        The other messages stay. Messages that another process has just received are not touched.
        """

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        """Return the texts of the first messages without receiving the messages. Empty for a missing queue."""


@dataclass(frozen=True)
class Place:
    """A folder in blob storage. `prefix` ends with '/' or is empty."""

    container: str
    prefix: str


@dataclass(frozen=True)
class Copy:
    """A blob to copy inside the storage account, and the copy's container and name."""

    source: Blob
    container: str  # of the source
    to_container: str
    to_name: str


@dataclass(frozen=True)
class Growth:
    """The bytes of a growing blob after an offset, the blob's size, and the time of the last write."""

    data: bytes
    size: int
    last_modified: datetime


@dataclass(frozen=True)
class FolderPage:
    """A page of names, and the token of the next page, '' for the last page."""

    names: list[str]
    token: str


class Blobs(Protocol):
    """The blobs of the shared storage account of drops, jobs and archives."""

    def list(self, place: Place) -> Iterator[Blob]:
        """Yield every blob under the place, sorted by name, page by page, with metadata. Empty if the container does
        not exist.
        """

    def paged(self, place: Place, token: str = "", page: int = 5000) -> Iterator[tuple[str, Blob]]:
        """Like `list`, with each blob's page token; a page has at most `page` blobs. A listing from a token starts with
        the token's page, in its current state.
        """

    def first(self, place: Place) -> Blob | None:
        """Return the first blob under the place by name, or None. Costs one request for any number of blobs."""

    def folders(self, place: Place, token: str = "", limit: int = 5000) -> FolderPage:
        """Return up to `limit` names of the folders and blobs directly under the place, sorted. Costs one request.

        The contents of the folders are not listed. A name that is both a folder and a blob is listed once.
        """

    def read(self, container: str, name: str, limit: int) -> bytes:
        """Read the blob. Raises NotFound, or BadInput without reading if the blob is longer than `limit` bytes."""

    def lines(self, container: str, name: str) -> Iterator[str]:
        """Yield the blob's lines in bounded memory; none if the blob does not exist. An unterminated last line counts,
        too.
        """

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        """Read up to `limit` bytes from `offset`. Empty at or past the end, and if the blob does not exist."""

    def grown(self, container: str, name: str, offset: int, limit: int) -> Growth | None:
        """Return up to `limit` bytes from `offset`, and when the blob was last written. Costs one request.

        None if the blob is empty or shorter than `offset`, or does not exist.
        """

    def tail(self, container: str, name: str, size: int) -> str:
        """Return the last `size` bytes as text; '' if the blob does not exist."""

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        """Write the whole blob. An existing blob is overwritten, a missing container created."""

    def write_once(self, container: str, name: str, data: bytes, content_type: str) -> None:
        """Write the blob unless a blob of this name exists. Creates the container if needed."""

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        """Copy on the server. Yield each finished copy in its current state, unordered.

        A copy carries its source's etag in the metadata `source_etag`. A copy that already exists with this etag is not
        made again. Raises NotFound if a source no longer exists. The bytes never pass through this process.
        """

    def remove(self, container: str, names: Iterable[str]) -> None:
        """Delete these blobs. A missing blob is skipped."""

    def remove_listed(self, container: str, blobs: Iterable[Blob]) -> None:
        """Delete these blobs in their listed state: a blob with a later write stays, and a missing blob is skipped."""

    def read_url(self, container: str, name: str, seconds: float) -> str:
        """Return a URL that reads only this blob, without a credential, for `seconds`. The blob need not exist yet."""

    def write_url(self, container: str, name: str, seconds: float) -> str:
        """Return a URL for writing only this blob within `seconds`, whole or in blocks, and for listing the blob's
        blocks.
        """

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        """Return a URL for creating only this blob, without a credential, within `seconds`.

        The URL can't overwrite an existing blob unless `replace` is true.
        """

    def check(self) -> None:
        """Raise Unavailable unless the account answers."""
