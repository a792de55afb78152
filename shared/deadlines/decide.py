"""Choose the nodes until the next check, so that dedicated nodes alone can always still meet the deadline. Pure."""

from __future__ import annotations

from shared.deadlines.plan import NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool, kind_of_age


def choose(plan: Plan, now: WorkLeft) -> NodeChoice:
    """The plan's choice, if dedicated nodes alone can still meet the deadline afterwards; otherwise dedicated nodes.

    A run that could meet its deadline with dedicated nodes alone at the start therefore meets it, whatever the pool
    does.
    """
    best = plan.best(now)
    return best if is_safe(plan.terms, now, best) else NodeChoice.DEDICATED


def is_safe(terms: Terms, now: WorkLeft, hold: NodeChoice) -> bool:
    """Whether dedicated nodes alone can still meet the deadline if no low-priority node is left at the next check."""
    if hold is NodeChoice.NONE:
        return now.slack - terms.step >= terms.reserve
    if hold is NodeChoice.LOW:
        starting = now.starting if now.holds is NodeChoice.LOW else terms.change
        lost = min(starting, terms.step)
        return now.slack - lost >= terms.reserve or now.work + lost <= terms.step
    return hold is NodeChoice.DEDICATED or (
        now.holds in (NodeChoice.DEDICATED, NodeChoice.BOTH) and now.slack >= terms.reserve
    )


def keeper_pays(terms: Terms, pool: Pool, age: float, nodes: int, pause: float) -> bool:
    """Whether one dedicated node, until low-priority nodes are back, costs less than starting over.

    `pause`: the seconds that all nodes lose by starting over. `age`: for how long the pool has had too few nodes. The
    work of the dedicated node counts at the price of low-priority nodes.
    """
    waits = terms.step / pool.chance(False, kind_of_age(age), terms.step)
    return pause * terms.low > waits * (terms.dedicated - terms.low) / nodes
