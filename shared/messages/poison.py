"""Poison messages, which failed too often: handle each message by the declaration of its kind.

A long outage leaves many of them. Poison messages that are done are deleted, so that only those that need a person
remain. A message that no timer sends again goes back to its queue, as long as it is news.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial

from shared.events.facts import MessagePoisoned
from shared.kernel import measure
from shared.kernel.errors import TrainyardError
from shared.kernel.memory import Memory, Topic
from shared.kernel.message import Message, function, is_old
from shared.kernel.ports import StoragePorts
from shared.kernel.storage import Queues
from shared.kernel.turns import Turns
from shared.messages.declared import QUEUES, decode

POISON = "-poison"  # the suffix that the host adds to a queue's name
MOST = 1000  # messages of one queue that one round reads, and that one keep_poison call renews
ROUNDS_FOR_ALL = 4  # calls of `poisoned` until every poison queue was polled

TURNS = Topic[Turns]("turns of the poison queues")


def poisoned(queues: Queues, memory: Memory) -> list[str]:
    """Return the queues with poison messages. Each poll is a request, so empty poison queues are polled by turns."""
    turns = memory.one(TURNS, lambda: Turns(ROUNDS_FOR_ALL))
    counts = queues.counts(turns.next(f"{queue}{POISON}" for queue in QUEUES))
    turns.saw(counts)
    for poison, count in counts.items():
        measure.level("queue.messages", count, queue=poison)
    return [poison.removesuffix(POISON) for poison, count in counts.items() if count]


def clear(ports: StoragePorts, queues: Iterable[str]) -> None:
    """Delete the finished poison messages of these queues, and send news back to its queue."""
    for queue in queues:
        ports.queues.clear(f"{queue}{POISON}", partial(_leaves, ports, queue), MOST)


def is_done(ports: StoragePorts, queue: str, text: str) -> bool:
    """Return whether this poison message needs no more work. False if that can't be determined now."""
    try:
        message = decode(queue, text.encode())
        return message is None or not message.done or bool(function(message.done)(ports, message))
    except TrainyardError:
        return False


def _leaves(ports: StoragePorts, queue: str, text: str) -> bool:
    """Return whether to delete the poison message: the message is done, or was sent back."""
    return is_done(ports, queue, text) or _goes_back(ports, queue, text)


def _goes_back(ports: StoragePorts, queue: str, text: str) -> bool:
    try:
        message = decode(queue, text.encode())
        if message is None or not _is_news(ports, message):
            return False
        ports.queues.send(message)
    except TrainyardError:
        return False
    return True


def _is_news(ports: StoragePorts, message: Message) -> bool:
    return bool(message.news_since) and not is_old(ports.clock(), function(message.news_since)(ports, message))


def state_poison(ports: StoragePorts, queues: Iterable[str]) -> None:
    """State each poison message of these queues as a fact."""
    for queue in queues:
        for text in ports.queues.peek(f"{queue}{POISON}"):
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            ports.happened(MessagePoisoned(queue, digest))


def keep_poison(queues: Queues) -> None:
    """Rewrite the poison messages without an expiry. The host's own poison messages expire after a week."""
    counts = queues.counts(f"{queue}{POISON}" for queue in QUEUES)
    for poison, count in counts.items():
        if count:
            queues.give_back(poison, poison, min(count, MOST))
