"""Facts stated by nouns. One table, shared/reactions.py, lists the reactions to each fact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """An event. After a crash a fact is stated again, and the reactions may run twice."""
