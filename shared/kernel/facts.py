"""What has happened, as nouns state it. What follows from it stands in one table, shared/reactions.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """Something that happened. Whoever dies right after stating it states it again, so what follows may come twice."""
