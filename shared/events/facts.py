"""Facts about messages."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact


@dataclass(frozen=True)
class MessagePoisoned(Fact):
    """A message of the queue failed too often and is in the poison queue. `digest` belongs to the text of the
    message.
    """

    queue: str
    digest: str
