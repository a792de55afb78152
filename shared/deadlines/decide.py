"""Choose the nodes until the next check: dedicated nodes alone must always be able to meet the deadline with the
remaining money. Pure.
"""

from __future__ import annotations

from shared.deadlines.plan import HOUR, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool, kind_of_age

_ON_LOW = (NodeChoice.LOW, NodeChoice.BOTH)


def choose(plan: Plan, now: WorkLeft) -> NodeChoice:
    """The plan's choice, if dedicated nodes alone can still meet the deadline afterwards for the money that is left;
    otherwise dedicated nodes.

    A run that could meet its deadline with dedicated nodes alone at the start therefore meets it, and costs no more
    than its money, whatever the pool does.
    """
    best = plan.best(now)
    keeps_both = is_safe(plan.terms, now, best) and is_affordable(plan.terms, now, best)
    return best if keeps_both else NodeChoice.DEDICATED


def is_safe(terms: Terms, now: WorkLeft, hold: NodeChoice) -> bool:
    """Whether dedicated nodes alone can still meet the deadline if no low-priority node is left at the next check."""
    if hold is NodeChoice.NONE:
        return now.slack - terms.step >= terms.reserve
    if hold is NodeChoice.LOW:
        starting = now.starting if now.holds in _ON_LOW else terms.change
        lost = min(starting, terms.step)
        return now.slack - lost >= terms.reserve or now.work + lost <= min(terms.step, now.left)
    return hold is NodeChoice.DEDICATED or (
        now.holds in (NodeChoice.DEDICATED, NodeChoice.BOTH) and now.slack >= terms.reserve
    )


def is_affordable(terms: Terms, now: WorkLeft, hold: NodeChoice, nodes: int = 1) -> bool:
    """Whether dedicated nodes alone can still do the rest for the remaining money, if no low-priority node is left at
    the next check and the dedicated nodes need the whole reserve until they work.

    `nodes`: the number of the run's nodes, of which one is dedicated if `hold` is ONE.
    """
    if hold is NodeChoice.DEDICATED:
        return True
    low = hold is not NodeChoice.NONE
    starting = 0.0 if hold is NodeChoice.BOTH else now.starting if now.holds in _ON_LOW else terms.change
    lost = min(starting, terms.step)
    paid = min(terms.step, now.work + lost) if low else 0.0
    work = now.work - max(0.0, paid - lost)
    beside = {NodeChoice.BOTH: terms.dedicated, NodeChoice.ONE: terms.dedicated / nodes}.get(hold, 0.0)
    alone = terms.dedicated * (work + terms.reserve) if work > 0 else 0.0
    return (terms.low + beside) * paid + alone <= now.money * HOUR


def keeper_pays(terms: Terms, pool: Pool, age: float, nodes: int, pause: float) -> bool:
    """Whether one dedicated node, until low-priority nodes are back, costs less than starting over.

    `pause`: the seconds that all nodes lose by starting over. `age`: for how long the pool has had too few nodes. The
    work of the dedicated node counts at the price of low-priority nodes.
    """
    waits = terms.step / pool.chance(False, kind_of_age(age), terms.step)
    return pause * terms.low > waits * (terms.dedicated - terms.low) / nodes
