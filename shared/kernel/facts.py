"""Facts that nouns state. What follows from each stands in one table, shared/reactions.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """Something that happened. After a crash it is stated again, so what follows may happen twice."""
