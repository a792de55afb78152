"""Messages that failed too often."""

from __future__ import annotations

import hashlib
from typing import Protocol

from shared.events.facts import MessagePoisoned
from shared.kernel.has import HasFacts, HasQueues
from shared.kernel.places import QUEUES


class Ports(HasQueues, HasFacts, Protocol):
    """What is needed here from outside."""


MOST_KEPT = 1000  # messages of one queue


def keep_poison(ports: Ports) -> None:
    """Put the messages of poison queues there anew: ours never end, but those that the host puts there live a week."""
    counts = ports.queues.counts(f"{queue}-poison" for queue in QUEUES)
    for poison, count in counts.items():
        if count:
            ports.queues.give_back(poison, poison, min(count, MOST_KEPT))


def look_at_poison(ports: Ports) -> None:
    """State each message that lies in a poison queue."""
    counts = ports.queues.counts(f"{queue}-poison" for queue in QUEUES)
    for queue in QUEUES:
        if counts[f"{queue}-poison"]:
            for text in ports.queues.peek(f"{queue}-poison"):
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                ports.happened(MessagePoisoned(queue, digest))
