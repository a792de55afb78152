"""Handle a message in the sending invocation. The queue keeps a copy in case the invocation crashes.

In Azure each function runs on its own instances, so a message costs a poll of its queue or the start of an instance. A
message that is handled at once is still sent, but stays invisible for a while, and is deleted when its handler has
finished. If the invocation crashes in between, the message becomes visible and is handled as usual.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from shared.kernel.errors import TrainyardError
from shared.kernel.message import Message
from shared.kernel.storage import Queues, Sent

log = logging.getLogger(__name__)

CAUGHT_AFTER = 60.0  # seconds until the message becomes visible, even while we handle it: a repeat does no harm


P = TypeVar("P", bound=Any)  # a dataclass with the fields `queues` and `clock`


@contextmanager
def at_once(ports: P, kinds: Collection[type[Message]], handle: Callable[[P, Message], None]) -> Iterator[P]:
    """Right after the block, handle the messages of these kinds that the block sends without delay, and the messages of
    their handlers.

    When a handler raises a TrainyardError, its message stays in the queue, and the rest of the invocation continues.
    When the invocation takes longer than CAUGHT_AFTER, the remaining messages stay in the queue, too.
    """
    going_on, until = MessagesAtOnce(ports.queues, kinds), ports.clock() + timedelta(seconds=CAUGHT_AFTER)
    inner = replace(ports, queues=going_on)
    yield inner
    for message, sent in going_on.pending():
        if ports.clock() >= until:
            return
        try:
            handle(inner, message)
            going_on.withdraw(message.queue, sent)
        except TrainyardError as exc:
            log.info("%s: not at once: %s", message.queue, exc)


class MessagesAtOnce:
    """Wraps storage.Queues and remembers the messages to handle at once."""

    def __init__(self, queues: Queues, kinds: Collection[type[Message]]) -> None:
        self._queues = queues
        self._kinds = kinds
        self._pending: list[tuple[Message, Sent]] = []

    def pending(self) -> Iterator[tuple[Message, Sent]]:
        """Yield the messages to handle now, oldest first. Handlers may add more meanwhile."""
        while self._pending:
            yield self._pending.pop(0)

    def send(self, message: Message, delay: float = 0.0) -> Sent:
        if delay > 0 or type(message) not in self._kinds:
            return self._queues.send(message, delay)
        sent = self._queues.send(message, CAUGHT_AFTER)
        self._pending.append((message, sent))
        return sent

    def put(self, queue: str, text: str) -> None:
        self._queues.put(queue, text)

    def withdraw(self, queue: str, sent: Sent) -> None:
        self._queues.withdraw(queue, sent)

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        return self._queues.counts(queues)

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        return self._queues.ages(queues)

    def give_back(self, source: str, target: str, limit: int) -> int:
        return self._queues.give_back(source, target, limit)

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        return self._queues.peek(queue, limit)
