"""Tell the scaling of clusters whether a project has money left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shared.money import decide
from shared.money.policy import Policy
from shared.money.ports import Books


class AccountBudgets:
    """Implements shared.clusters.ports.Budgets with the projects' accounts."""

    def __init__(self, books: Books, money: Policy, clock: Callable[[], datetime]) -> None:
        self._books, self._money, self._clock = books, money, clock

    def exhausted(self, project: str) -> str | None:
        """Return why this project may spend nothing more, as a sentence; None while it may."""
        budget = self._money.budgets.get(project)
        if budget is None or budget.month is None or not (stored := self._books.account(project)):
            return None
        account = decide.of_month(stored.value, self._clock())
        if account.reached_at is None:
            return None
        return f"Project {project} has spent ${account.spent:.2f}, all of its ${budget.month:.2f} for this month."
