"""Queues and blobs in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from shared.kernel import message as kernel
from shared.kernel.errors import BadInput, Changed, NotFound
from shared.kernel.storage import Blob, Copy, FolderPage, Growth, Place, Sent
from tests.fakes.records import Etags


class Clock:
    """A clock that moves only by `advance` and `pause`. Calling it returns the time; `paused` are the pauses made."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = now
        self.paused: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.advance(seconds)


class OtherClock:
    """A clock that follows another one: it always shows `seconds` later than the other."""

    def __init__(self, clock: Callable[[], datetime], seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def __call__(self) -> datetime:
        return self._clock() + timedelta(seconds=self._seconds)

    def pause(self, seconds: float) -> None:
        self._seconds += seconds


BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Message:
    text: str
    visible_at: datetime
    added_at: datetime = BEFORE
    number: int = 0

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class FakeQueues:
    """Queues in memory. `take` is the host's side."""

    LONGEST_DELAY = 7 * 86400.0
    MOST_PEEKED = 32

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock or Clock()
        self.messages: dict[str, list[Message]] = {}
        self.sent = 0

    def send(self, message: kernel.Message, delay: float = 0.0) -> Sent:
        return self._put(message.queue, kernel.encode(message), delay)

    def put(self, queue: str, text: str) -> None:
        self._put(queue, text)

    def _put(self, queue: str, text: str, delay: float = 0.0) -> Sent:
        visible_at = self.clock() + timedelta(seconds=min(max(delay, 0.0), self.LONGEST_DELAY))
        self.sent += 1
        sent = Message(text, visible_at, self.clock(), self.sent)
        self.messages.setdefault(queue, []).append(sent)
        return Sent(str(sent.number), "")

    def withdraw(self, queue: str, sent: Sent) -> None:
        there = self.messages.get(queue, [])
        there[:] = [message for message in there if str(message.number) != sent.id]

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        return {queue: len(self.messages.get(queue, [])) for queue in queues}

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        return [message.text for message in self.visible(queue)[: min(limit, self.MOST_PEEKED)]]

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        now = self.clock()
        return {q: max(0.0, *((now - m.added_at).total_seconds() for m in self.visible(q)[:1]), 0.0) for q in queues}

    def give_back(self, source: str, target: str, limit: int) -> int:
        moved = self.visible(source)[:limit]
        for message in moved:
            self.messages.setdefault(target, []).append(Message(message.text, self.clock()))
            self.messages[source].remove(message)
        return len(moved)

    def clear(self, queue: str, done: Callable[[str], bool], limit: int) -> int:
        gone = [message for message in self.visible(queue)[:limit] if done(message.text)]
        for message in gone:
            self.messages[queue].remove(message)
        return len(gone)

    def visible(self, queue: str) -> list[Message]:
        return [message for message in self.messages.get(queue, []) if message.visible_at <= self.clock()]

    def take(self, queue: str, index: int = 0) -> Message | None:
        """Remove and return a message that is visible at the clock's time: the first one, or the `index`-th (modulo
        their number). Return None if no message is visible."""
        if not (visible := self.visible(queue)):
            return None
        message = visible[index % len(visible)]
        self.messages[queue].remove(message)
        return message

    def next_visible_at(self) -> datetime | None:
        """Return when the first message of any queue is or becomes visible; None if all queues are empty."""
        return min((m.visible_at for messages in self.messages.values() for m in messages), default=None)


@dataclass
class _Content:
    blob: Blob
    data: bytes


class FakeBlobs:
    """`containers` maps container and name to blob and bytes. `put` and `delete` are the uploader's side."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock or Clock()
        self.containers: dict[str, dict[str, _Content]] = {}
        self.copied: list[str] = []  # the destinations of the copies that were actually made
        self.page = 5000  # most blobs in a page
        self._etags = Etags()

    def put(self, container: str, name: str, data: bytes = b"", md5: bool = True) -> Blob:
        """Upload a blob. Without `md5` the service knows none, as for a blob of several blocks."""
        return self._put(container, name, data, md5=hashlib.md5(data).hexdigest() if md5 else "")

    def delete(self, container: str, name: str) -> None:
        self.containers.get(container, {}).pop(name, None)

    def list(self, place: Place) -> Iterator[Blob]:
        for _, content in sorted(self.containers.get(place.container, {}).items()):
            if content.blob.name.startswith(place.prefix):
                yield content.blob

    def paged(self, place: Place, token: str = "", page: int = 5000) -> Iterator[tuple[str, Blob]]:
        ahead = (blob for blob in self.list(place) if blob.name >= token)
        for number, blob in enumerate(ahead):
            token = blob.name if number and number % min(page, self.page) == 0 else token
            yield token, blob

    def first(self, place: Place) -> Blob | None:
        return next(self.list(place), None)

    def folders(self, place: Place, token: str = "", limit: int = 5000) -> FolderPage:
        names = sorted({blob.name[len(place.prefix) :].split("/", 1)[0] for blob in self.list(place)}, key=str.encode)
        ahead = [name for name in names if name.encode() > token.encode()]
        return FolderPage(ahead[:limit], ahead[limit - 1] if len(ahead) > limit else "")

    def read(self, container: str, name: str, limit: int) -> bytes:
        if (content := self._get(container, name)) is None:
            raise NotFound(f"there is no blob {container}/{name}")
        if len(content.data) > limit:
            raise BadInput(f"{container}/{name} has {len(content.data)} bytes, the limit is {limit}")
        return content.data

    def lines(self, container: str, name: str) -> Iterator[str]:
        if content := self._get(container, name):
            text = content.data.decode("utf-8", "replace")
            yield from (line.removesuffix("\r") for line in text.removesuffix("\n").split("\n") if text)

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        content = self._get(container, name)
        return content.data[offset : offset + limit] if content else b""

    def grown(self, container: str, name: str, offset: int, limit: int) -> Growth | None:
        content = self._get(container, name)
        if not content or not content.data or len(content.data) < offset:
            return None
        written = content.blob.last_modified
        assert written is not None
        return Growth(content.data[offset : offset + limit], len(content.data), written)

    def tail(self, container: str, name: str, size: int) -> str:
        content = self._get(container, name)
        return content.data[-size:].decode("utf-8", "replace") if content and size > 0 else ""

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        return self.put(container, name, data)

    def write_once(self, container: str, name: str, data: bytes, content_type: str) -> None:
        if self._get(container, name) is None:
            self.put(container, name, data)

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        for copy in copies:
            there = self._get(copy.to_container, copy.to_name)
            if there and there.blob.metadata.get("source_etag") == copy.source.etag:
                yield there.blob
            else:
                yield self._copied(copy)

    def remove(self, container: str, names: Iterable[str]) -> None:
        for name in names:
            self.delete(container, name)

    def remove_listed(self, container: str, blobs: Iterable[Blob]) -> None:
        for blob in blobs:
            there = self.first(Place(container, blob.name))
            if there and (there.name, there.etag) == (blob.name, blob.etag):
                self.delete(container, blob.name)

    def read_url(self, container: str, name: str, seconds: float) -> str:
        until = (self.clock() + timedelta(seconds=seconds)).isoformat()
        return f"https://fake.blob/{container}/{quote(name)}?sp=r&se={quote(until)}"

    def write_url(self, container: str, name: str, seconds: float) -> str:
        until = (self.clock() + timedelta(seconds=seconds)).isoformat()
        return f"https://fake.blob/{container}/{quote(name)}?sp=rcw&se={quote(until)}"

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        return self.read_url(container, name, seconds).replace("sp=r", "sp=cw" if replace else "sp=c")

    def check(self) -> None:
        pass

    def _copied(self, copy: Copy) -> Blob:
        if (source := self._get(copy.container, copy.source.name)) is None:
            raise NotFound(f"{copy.container}/{copy.source.name} is gone; it can't be copied")
        if source.blob.etag != copy.source.etag:
            raise Changed(f"{copy.container}/{copy.source.name} changed in between")
        self.copied.append(f"{copy.to_container}/{copy.to_name}")
        metadata = {"source_etag": copy.source.etag}
        return self._put(copy.to_container, copy.to_name, source.data, source.blob.md5, metadata)

    def _get(self, container: str, name: str) -> _Content | None:
        return self.containers.get(container, {}).get(name)

    def _put(self, container: str, name: str, data: bytes, md5: str, metadata: dict[str, str] | None = None) -> Blob:
        blob = Blob(name, self._etags.next(), len(data), md5, self.clock(), metadata or {})
        self.containers.setdefault(container, {})[name] = _Content(blob, data)
        return blob
