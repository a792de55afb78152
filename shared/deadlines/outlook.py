"""The expected cost of meeting a deadline, whether the deadline can be promised, and the run's cached plan. Pure."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from shared.deadlines.plan import HOUR, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool

LOOKS = 200  # approximate number of checks until the deadline; the plan's steps
MOST_BYTES = 64 * 2**20  # of the tables of all cached plans; those of 72 hours have 10 MiB
SHORTEST, LONGEST = 1.0, 300.0  # seconds between two checks


@dataclass(frozen=True)
class Outlook:
    """Costs in dollars: on low-priority nodes alone, at worst whatever the pool does, and as expected from the pool's
    behavior.

    `seconds` is the shortest time in which dedicated nodes can do the work, from the moment of the request.
    """

    best: float
    worst: float
    expected: float
    seconds: float


def terms_of(low: float, dedicated: float, change: float, left: float, overlaps: bool, measured: float = 0.0) -> Terms:
    """The terms of a run with `left` seconds until its deadline. `low`, `dedicated`: dollars per hour for all nodes.

    The reserve covers the worst case: a loss is noticed only at the next check, and new nodes may take twice the usual
    time. Once the run has `measured` a change, a change costs the measured time; the reserve can only grow by it.
    """
    step = max(SHORTEST, min(LONGEST, left / LOOKS))
    reserve = 2 * max(change, measured) + step
    return Terms(low, dedicated, measured or change, step, reserve, overlaps)


def outlook(terms: Terms, pool: Pool, left: float, work: float) -> Outlook:
    """The cost of `work` seconds of work within `left` seconds."""
    seconds = work + terms.reserve
    if left < seconds:
        alone = terms.dedicated * (work + terms.change) / HOUR
        return Outlook(alone, alone, alone, seconds)
    plan = plan_for(terms, pool, left, left - work)
    best = min(plan.worst, terms.low * (work + terms.change) / HOUR)
    expected = plan.cost(WorkLeft(left, work, NodeChoice.NONE, True, 0.0))
    return Outlook(best, plan.worst, min(plan.worst, max(best, expected)), seconds)


class Plans:
    """The most recently used plans, up to `most_bytes` of tables together; at least the last plan."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._plans: dict[tuple[Terms, Pool, float, float], Plan] = {}  # the last used one is the last

    @property
    def size(self) -> int:
        return sum(plan.size for plan in self._plans.values())

    def get(self, terms: Terms, pool: Pool, left: float, slack: float) -> Plan:
        key = terms, pool, left, slack
        with self._lock:
            plan = self._plans.pop(key, None) or Plan(terms, pool, left, slack)
            self._plans[key] = plan
            while len(self._plans) > 1 and self.size > self._most_bytes:
                del self._plans[next(iter(self._plans))]
        return plan


_plans = Plans()


def plan_for(terms: Terms, pool: Pool, left: float, slack: float) -> Plan:
    """The plan of a run. The plan covers all cases until the deadline, and so never changes during the run."""
    return _plans.get(terms, pool, left, slack)
