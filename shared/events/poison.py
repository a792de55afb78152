"""Messages that failed too often."""

from __future__ import annotations

import hashlib

from shared.events.facts import MessagePoisoned
from shared.kernel.places import QUEUES
from shared.system import System


def look_at_poison(system: System) -> None:
    """State each message that lies in a poison queue."""
    counts = system.queues.counts(f"{queue}-poison" for queue in QUEUES)
    for queue in QUEUES:
        if counts[f"{queue}-poison"]:
            for text in system.queues.peek(f"{queue}-poison"):
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                system.happened(MessagePoisoned(queue, digest))
