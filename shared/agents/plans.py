"""Plans: a request that its caller may submit until the plan expires, with the greatest cost. Pure.

A plan holds the whole request. So the request can't change between the plan and its submission, even if the process
restarts in between. The id of the plan is the key of the request, so a repeated submission finds the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from shared.kernel.errors import Conflict
from shared.kernel.parts import FeatureStore

LIFE = timedelta(minutes=15)  # between a plan and its submission
KEPT = timedelta(days=1)  # how long a plan answers a repeated submission
HALF_CENT = 0.005  # dollars; costs are shown to the cent


@dataclass(frozen=True)
class SubmissionPlan:
    """A request to an operation of the API, and the greatest cost that the plan stated, in dollars; None if unknown.

    `submitted_at` is written before the request is made, and `result` after it.
    """

    id: str
    caller: str
    operation: str
    made_at: datetime
    path: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    greatest: float | None = None
    submitted_at: datetime | None = None
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def expires_at(self) -> datetime:
        return self.made_at + LIFE


class SubmissionPlans(Protocol):
    """The plans of each caller. No caller can read the plans of another."""

    def put(self, plan: SubmissionPlan) -> None:
        """Store a plan, or the result of a plan. Remove the caller's plans that are older than this plan by KEPT."""

    def get(self, caller: str, plan: str) -> SubmissionPlan | None:
        """Return this caller's plan, or None."""


PLANS = FeatureStore[SubmissionPlans]("plans")


def check_time(plan: SubmissionPlan, now: datetime) -> None:
    """Raise Conflict for an expired plan that was never submitted."""
    if now >= plan.expires_at and plan.submitted_at is None:
        raise Conflict(
            f"Plan {plan.id} expired at {plan.expires_at:%H:%M:%S} UTC. Nothing was submitted. Make a new plan.",
            "plan_expired",
        )


def check_cost(plan: SubmissionPlan, greatest: float | None) -> None:
    """Raise Conflict if the request could cost more now than the plan states."""
    if plan.greatest is None or (greatest is not None and greatest < plan.greatest + HALF_CENT):
        return
    now = "an unknown amount" if greatest is None else f"${greatest:.2f}"
    raise Conflict(
        f"Plan {plan.id} states at most ${plan.greatest:.2f}, but the same request could now cost {now}. "
        "Nothing was submitted. Make a new plan.",
        "plan_cost_changed",
    )
