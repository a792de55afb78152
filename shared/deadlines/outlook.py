"""What it will cost to be done by a date, and whether that can be promised; and the plan that is kept for it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from shared.deadlines.plan import HOUR, Hold, Plan, Standing, Terms
from shared.deadlines.pool import Pool

LOOKS = 200  # until the date, about; the plan's steps
SHORTEST, LONGEST = 1.0, 300.0  # seconds between two looks


@dataclass(frozen=True)
class Outlook:
    """In dollars: on low-priority nodes alone, on dedicated ones alone, and as the pool behaves.

    `seconds` is the shortest time in which dedicated nodes can do it, from the moment of asking.
    """

    best: float
    worst: float
    expected: float
    seconds: float


def terms_of(low: float, dedicated: float, change: float, left: float, overlaps: bool, measured: float = 0.0) -> Terms:
    """The terms of a run with so many seconds until its date: `low` and `dedicated` are dollars an hour for all nodes.

    A loss is known at the next look, and new nodes may take twice as long as they mostly do. Once a change was
    `measured` in the run itself, that is what one costs; what is kept in reserve only grows by it.
    """
    step = max(SHORTEST, min(LONGEST, left / LOOKS))
    reserve = 2 * max(change, measured) + step
    return Terms(low, dedicated, measured or change, step, reserve, overlaps)


def outlook(terms: Terms, pool: Pool, left: float, work: float) -> Outlook:
    """What so many seconds of work cost that are to be done within `left` seconds."""
    seconds = work + terms.reserve
    worst = terms.dedicated * (work + terms.change) / HOUR
    if left < seconds:
        return Outlook(worst, worst, worst, seconds)
    best = min(worst, terms.low * (work + terms.change) / HOUR)
    now = Standing(left, work, Hold.NONE, True, 0.0)
    return Outlook(best, worst, min(worst, max(best, plan_for(terms, pool, left, left - work).cost(now))), seconds)


@lru_cache(maxsize=64)
def plan_for(terms: Terms, pool: Pool, left: float, slack: float) -> Plan:
    """The plan of a run, the same one as long as it lives: it holds all that may come until the date."""
    return Plan(terms, pool, left, slack)
