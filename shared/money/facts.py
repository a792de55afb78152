"""What happens to budgets."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact


@dataclass(frozen=True)
class BudgetWarned(Fact):
    """So many percent of a project's month, or of what one run may cost, are spent. `subject`: the month or the run."""

    project: str
    subject: str
    why: str


@dataclass(frozen=True)
class BudgetReached(Fact):
    """All of it is spent."""

    project: str
    subject: str
    why: str
