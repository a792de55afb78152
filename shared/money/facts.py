"""Facts about budgets."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact


@dataclass(frozen=True)
class BudgetWarned(Fact):
    """A percentage of a project's monthly budget or of its limit per run is spent. `subject`: the month or the run."""

    project: str
    subject: str
    why: str


@dataclass(frozen=True)
class BudgetReached(Fact):
    """The whole amount is spent."""

    project: str
    subject: str
    why: str
