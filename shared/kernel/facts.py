"""Facts that nouns state. One table, shared/reactions.py, lists the reactions to each fact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """Something that happened. After a crash a fact is stated again, so its reactions may run twice."""
