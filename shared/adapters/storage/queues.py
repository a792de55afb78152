"""Storage queues. Messages are plain JSON text, because host.json sets the triggers' messageEncoding to none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from azure.core.exceptions import HttpResponseError

from shared.adapters.translation import code_of, translated
from shared.kernel.message import Message, encode
from shared.kernel.storage import Sent

if TYPE_CHECKING:
    from azure.storage.queue import QueueServiceClient

_LONGEST_DELAY = 7 * 24 * 3600  # seconds, the service's limit
_FOR_EVER = -1  # never expires; by default the service would drop an unhandled message after 7 days
_TAKEN = ("MessageNotFound", "PopReceiptMismatch", "QueueNotFound")  # received or deleted by another process
_MOST_PEEKED = 32  # also the most that one request receives
_READERS = 8  # queues that are counted concurrently
_HIDDEN = 60  # seconds that a message is invisible while it moves between two queues


class StorageQueues:
    """The first message to a missing queue creates it; a read treats a missing queue as empty."""

    def __init__(self, service: QueueServiceClient) -> None:
        self._service = service
        self._readers = ThreadPoolExecutor(_READERS, "queues")

    def send(self, message: Message, delay: float = 0.0) -> Sent:
        return self._put(message.queue, encode(message), delay)

    def put(self, queue: str, text: str) -> None:
        self._put(queue, text)

    def _put(self, queue: str, text: str, delay: float = 0.0) -> Sent:
        seconds = min(max(math.ceil(delay), 0), _LONGEST_DELAY)
        with translated(f"could not send to queue {queue}"):
            try:
                return self._send(queue, text, seconds)
            except HttpResponseError as exc:
                if code_of(exc) != "QueueNotFound":
                    raise
                self._create(queue)
                return self._send(queue, text, seconds)

    def withdraw(self, queue: str, sent: Sent) -> None:
        with translated(f"could not take back a message of queue {queue}"):
            try:
                self._service.get_queue_client(queue).delete_message(sent.id, sent.receipt)
            except HttpResponseError as exc:
                if code_of(exc) not in _TAKEN:
                    raise

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        names = list(queues)
        return dict(zip(names, self._readers.map(self._count, names), strict=True))

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        return {queue: self._age(queue) for queue in queues}

    def _age(self, queue: str) -> float:
        with translated(f"could not peek at queue {queue}"):
            try:
                first = self._service.get_queue_client(queue).peek_messages(1)
            except HttpResponseError as exc:
                if code_of(exc) != "QueueNotFound":
                    raise
                return 0.0
        added = first[0].inserted_on if first else None
        return max(0.0, (datetime.now(UTC) - added).total_seconds()) if added else 0.0

    def give_back(self, source: str, target: str, limit: int) -> int:
        moved, client = 0, self._service.get_queue_client(source)
        with translated(f"could not give back messages of queue {source}"):
            left = min(limit, self._count(source))
            while left > moved:
                some = min(left - moved, _MOST_PEEKED)
                messages = list(
                    client.receive_messages(max_messages=some, visibility_timeout=_HIDDEN, messages_per_page=some)
                )
                for message in messages:
                    self._send(target, str(message.content), 0)
                    client.delete_message(message)
                moved += len(messages)
                if not messages:
                    break
        return moved

    def clear(self, queue: str, done: Callable[[str], bool], limit: int) -> int:
        deleted, seen, client = 0, 0, self._service.get_queue_client(queue)
        with translated(f"could not clear queue {queue}"):
            left = min(limit, self._count(queue))
            kept = []
            while left > seen:
                some = min(left - seen, _MOST_PEEKED)
                messages = list(
                    client.receive_messages(max_messages=some, visibility_timeout=_HIDDEN, messages_per_page=some)
                )
                for message in messages:
                    if done(str(message.content)):
                        client.delete_message(message)
                        deleted += 1
                    else:
                        kept.append(message)
                seen += len(messages)
                if not messages:
                    break
            for message in kept:  # visible again at once; after a crash, only after _HIDDEN seconds
                client.update_message(message, visibility_timeout=0)
        return deleted

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        with translated(f"could not peek at queue {queue}"):
            try:
                messages = self._service.get_queue_client(queue).peek_messages(min(limit, _MOST_PEEKED))
            except HttpResponseError as exc:
                if code_of(exc) != "QueueNotFound":
                    raise
                return []
        return [str(message.content) for message in messages]

    def _send(self, queue: str, text: str, delay: int) -> Sent:
        client = self._service.get_queue_client(queue)
        message = client.send_message(text, visibility_timeout=delay, time_to_live=_FOR_EVER)
        return Sent(str(message.id), str(message.pop_receipt))

    def _create(self, queue: str) -> None:
        try:
            self._service.create_queue(queue)
        except HttpResponseError as exc:
            if code_of(exc) != "QueueAlreadyExists":
                raise

    def _count(self, queue: str) -> int:
        with translated(f"could not count queue {queue}"):
            try:
                properties = self._service.get_queue_client(queue).get_queue_properties()
            except HttpResponseError as exc:
                if code_of(exc) != "QueueNotFound":
                    raise
                return 0
        return int(properties.approximate_message_count or 0)
