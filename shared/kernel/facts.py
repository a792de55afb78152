"""What has happened, as nouns state it. What follows from it stands in one table, shared/reactions.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Fact:
    """Something that happened. Whoever dies right after stating it states it again, so what follows may come twice."""


class HasFacts(Protocol):
    def happened(self, fact: Fact) -> None:
        """State a fact. Returns when all that follows from it was done, or has a message of its own that does it."""
