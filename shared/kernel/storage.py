"""Blobs and queues of the one storage account, as the system needs them.

shared/adapters talks to Azure, tests/fakes/ports.py to memory; both pass the same contract suite. Each method says what
happens when it is called twice, late, or on something finished. All of them may raise errors.Unavailable; the caller's
message is then tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shared.kernel.message import Message


@dataclass(frozen=True)
class Blob:
    """One blob as a listing shows it. `md5` is lower-case hex, and empty where the service doesn't know it."""

    name: str
    etag: str
    size: int
    md5: str = ""
    last_modified: datetime | None = None
    metadata: dict[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Sent:
    """A message on its queue, for whoever sent it."""

    id: str
    receipt: str


class Queues(Protocol):
    """Storage queues with JSON messages. Delivery is at least once and in no order."""

    def send(self, message: Message, delay: float = 0.0) -> Sent:
        """Put a message in its queue, invisible for `delay` seconds (at most 7 days; more is cut to that)."""

    def put(self, queue: str, text: str) -> None:
        """Put a text in a queue as it is: an event of another service, or a message from elsewhere."""

    def take_back(self, queue: str, sent: Sent) -> None:
        """Delete a message that was sent. One that somebody has taken since, or deleted, is theirs."""

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        """The approximate number of messages in each queue; 0 for one that does not exist."""

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        """For how many seconds the first message of each queue that may be taken has been there, with the delay that it
        was sent with; 0 where there is none."""

    def give_back(self, source: str, target: str, limit: int) -> int:
        """Move up to `limit` messages that are there now from one queue to another; returns how many.

        A message is in the other one before it leaves this one, so one that dies on the way comes twice, never not at
        all. Those that somebody else has just taken stay.
        """

    def clear(self, queue: str, done: Callable[[str], bool], limit: int) -> int:
        """Delete those of up to `limit` messages that are there now whose text is done; returns how many.

        The others stay. Those that somebody else has just taken are left alone.
        """

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        """The first messages' texts, left where they are. Empty for a queue that does not exist."""


@dataclass(frozen=True)
class Place:
    """A folder in blob storage: `prefix` ends with '/' or is empty."""

    container: str
    prefix: str


@dataclass(frozen=True)
class Copy:
    """A blob to copy inside the storage account, and where to."""

    source: Blob
    container: str  # of the source
    to_container: str
    to_name: str


@dataclass(frozen=True)
class FolderPage:
    """Names, and the token of what follows, '' at the end."""

    names: list[str]
    token: str


class Blobs(Protocol):
    """Blobs of the one storage account that drops, jobs and archives share."""

    def list(self, place: Place) -> Iterator[Blob]:
        """Every blob under the place, by name, page by page, with its metadata. Empty if the container isn't there."""

    def paged(self, place: Place, token: str = "", page: int = 5000) -> Iterator[tuple[str, Blob]]:
        """The same, each with the token of its page of at most so many blobs. A listing from a token begins with that
        page, as it is by then."""

    def first(self, place: Place) -> Blob | None:
        """The first blob under the place by name, or None. One request, however many there are."""

    def folders(self, place: Place, token: str = "", limit: int = 5000) -> FolderPage:
        """Up to `limit` names, by name, of the folders and blobs right under the place. One request.

        What is in the folders is not listed. A name that is a folder and a blob too comes once.
        """

    def read(self, container: str, name: str, limit: int) -> bytes:
        """The blob. Raises NotFound, or BadInput if it is longer than `limit` bytes (nothing is read then)."""

    def lines(self, container: str, name: str) -> Iterator[str]:
        """The blob's lines, in bounded memory; none if it isn't there. A last line without its end counts too."""

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes from `offset` on; empty at or past the end, or if the blob isn't there."""

    def tail(self, container: str, name: str, size: int) -> str:
        """The last `size` bytes as text; '' if the blob isn't there."""

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        """Write the blob whole, over what was there. Makes the container on first need."""

    def write_once(self, container: str, name: str, data: bytes, content_type: str) -> None:
        """Write the blob unless one of this name is there. Makes the container on first need."""

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        """Copy on the server, and give each finished copy (as it now is) in no order.

        A copy carries its source's etag in metadata `source_etag`. One that is already there with this etag is not
        made again. A source that is gone raises NotFound. The bytes never come here.
        """

    def remove(self, container: str, names: Iterable[str]) -> None:
        """Delete these blobs. Nothing happens for one that isn't there."""

    def remove_listed(self, container: str, blobs: Iterable[Blob]) -> None:
        """Delete these blobs as they were listed: one that was written since then stays, one that is gone is fine."""

    def read_url(self, container: str, name: str, seconds: float) -> str:
        """A URL that reads this very blob and nothing else, without a credential, for so long. It need not be there."""

    def write_url(self, container: str, name: str, seconds: float) -> str:
        """A URL that writes this very blob for so long, whole or in blocks, and tells which blocks are there."""

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        """A URL that makes this very blob and nothing else, without a credential, for so long.

        It can't write over a blob that is there, unless `replace` says so.
        """

    def check(self) -> None:
        """Raise Unavailable unless the account answers."""
