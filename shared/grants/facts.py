"""Facts about grants."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact


@dataclass(frozen=True)
class GrantUsed(Fact):
    """The runs have used this percentage of the grant's budget. At 100, a run may have been refused because of the
    budget.
    """

    grant: str
    percent: int
    why: str
