"""The plans of agents in memory, which pass the same tests as the plans in tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.agents.plans import KEPT, PLANS, SubmissionPlan
from tests.fakes.ports import Crashing


class FakePlans:
    """See shared.agents.plans.SubmissionPlans."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], SubmissionPlan] = {}

    def put(self, plan: SubmissionPlan) -> None:
        old = [key for key, each in self.rows.items() if key[0] == plan.caller and each.made_at < plan.made_at - KEPT]
        for key in old:
            del self.rows[key]
        self.rows[plan.caller, plan.id] = plan

    def get(self, caller: str, plan: str) -> SubmissionPlan | None:
        return self.rows.get((caller, plan))


def stores(journals: dict[str, Any], words: Iterable[str] = ()) -> dict[str, Any]:
    """Return the store of plans, as the System has it."""
    return {PLANS.name: Crashing(journals.setdefault("plans", FakePlans()), iter(words))}
