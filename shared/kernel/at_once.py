"""What a message asks for, done in the invocation that sends it: the queue is what catches a fall.

Each function has instances of its own in Azure, so a message costs its queue's poll, or the start of an instance. What
goes on at once is sent all the same, hidden for a while, and its message is taken back when it is done. Whoever dies in
between has left it there: it comes as if nobody had tried.
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

CAUGHT_AFTER = 60.0  # seconds until the message comes by itself, even if we are still at it: a repeat does no harm


P = TypeVar("P", bound=Any)  # a dataclass with the fields `queues` and `clock`


@contextmanager
def at_once(ports: P, kinds: Collection[type[Message]], handle: Callable[[P, Message], None]) -> Iterator[P]:
    """Let messages of these kinds that are sent inside, without delay, be handled right after it; theirs too.

    An error of ours in one leaves its message where it is; nothing else of the invocation fails by it. So does an
    invocation that has taken so long that the message comes by itself.
    """
    going_on, until = GoingOn(ports.queues, kinds), ports.clock() + timedelta(seconds=CAUGHT_AFTER)
    inner = replace(ports, queues=going_on)
    yield inner
    for message, sent in going_on.pending():
        if ports.clock() >= until:
            return
        try:
            handle(inner, message)
            going_on.take_back(message.queue, sent)
        except TrainyardError as exc:
            log.info("%s: not at once: %s", message.queue, exc)


class GoingOn:
    """Implements storage.Queues on others, and remembers what can go on at once."""

    def __init__(self, queues: Queues, kinds: Collection[type[Message]]) -> None:
        self._queues = queues
        self._kinds = kinds
        self._pending: list[tuple[Message, Sent]] = []

    def pending(self) -> Iterator[tuple[Message, Sent]]:
        """What was sent to be done now, the oldest first; more may come meanwhile."""
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

    def take_back(self, queue: str, sent: Sent) -> None:
        self._queues.take_back(queue, sent)

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        return self._queues.counts(queues)

    def ages(self, queues: Iterable[str]) -> dict[str, float]:
        return self._queues.ages(queues)

    def give_back(self, source: str, target: str, limit: int) -> int:
        return self._queues.give_back(source, target, limit)

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        return self._queues.peek(queue, limit)
