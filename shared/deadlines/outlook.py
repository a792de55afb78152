"""The expected cost of meeting a deadline, whether the deadline can be promised, and the run's cached plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from shared.deadlines.plan import HOUR, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool

LOOKS = 200  # approximate number of checks until the deadline; the plan's steps
SHORTEST, LONGEST = 1.0, 300.0  # seconds between two checks


@dataclass(frozen=True)
class Outlook:
    """Costs in dollars: on low-priority nodes alone, on dedicated nodes alone, and expected from the pool's behavior.

    `seconds` is the shortest time in which dedicated nodes can do the work, from the moment of the request.
    """

    best: float
    worst: float
    expected: float
    seconds: float


def terms_of(low: float, dedicated: float, change: float, left: float, overlaps: bool, measured: float = 0.0) -> Terms:
    """The terms of a run that must be done in `left` seconds. `low`, `dedicated`: dollars per hour for all nodes.

    The reserve covers the worst case: a loss is noticed only at the next check, and new nodes may take twice the usual
    time. Once the run has `measured` a change, a change costs the measured time; the reserve can only grow by it.
    """
    step = max(SHORTEST, min(LONGEST, left / LOOKS))
    reserve = 2 * max(change, measured) + step
    return Terms(low, dedicated, measured or change, step, reserve, overlaps)


def outlook(terms: Terms, pool: Pool, left: float, work: float) -> Outlook:
    """The cost of `work` seconds of work that must be done within `left` seconds."""
    seconds = work + terms.reserve
    worst = terms.dedicated * (work + terms.change) / HOUR
    if left < seconds:
        return Outlook(worst, worst, worst, seconds)
    best = min(worst, terms.low * (work + terms.change) / HOUR)
    now = WorkLeft(left, work, NodeChoice.NONE, True, 0.0)
    return Outlook(best, worst, min(worst, max(best, plan_for(terms, pool, left, left - work).cost(now))), seconds)


@lru_cache(maxsize=64)
def plan_for(terms: Terms, pool: Pool, left: float, slack: float) -> Plan:
    """The plan of a run. It stays the same during the run, because it covers all cases until the deadline."""
    return Plan(terms, pool, left, slack)
