"""Facts about grants."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact


@dataclass(frozen=True)
class GrantUsed(Fact):
    """So many percent of the grant's budget are used, or a run was refused because the budget is used up (100)."""

    grant: str
    percent: int
    why: str
