"""Messages that failed too often."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

from shared.events.facts import MessagePoisoned
from shared.kernel import measure
from shared.kernel.has import HasFacts, HasMemory, HasQueues
from shared.kernel.memory import Topic
from shared.kernel.places import QUEUES
from shared.kernel.turns import Turns


class Ports(HasQueues, HasMemory, HasFacts, Protocol):
    """What is needed here from outside."""


MOST_KEPT = 1000  # messages of one queue
LOOKS_FOR_ALL = 4  # of poisoned
TURNS = Topic[Turns]("turns of the poison queues")


def keep_poison(ports: Ports) -> None:
    """Put the messages of poison queues there anew: ours never end, but those that the host puts there live a week."""
    counts = ports.queues.counts(f"{queue}-poison" for queue in QUEUES)
    for poison, count in counts.items():
        if count:
            ports.queues.give_back(poison, poison, min(count, MOST_KEPT))


def poisoned(ports: Ports) -> list[str]:
    """The poison queues that hold something. Each queue is a request, so the empty ones are asked by turns."""
    turns = ports.memory.one(TURNS, lambda: Turns(LOOKS_FOR_ALL))
    counts = ports.queues.counts(turns.next(f"{queue}-poison" for queue in QUEUES))
    turns.saw(counts)
    for poison, count in counts.items():
        measure.level("queue.messages", count, queue=poison)
    return [poison for poison, count in counts.items() if count]


def look_at_poison(ports: Ports, queues: Iterable[str]) -> None:
    """State each message that lies in these poison queues."""
    for poison in queues:
        for text in ports.queues.peek(poison):
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            ports.happened(MessagePoisoned(poison.removesuffix("-poison"), digest))
