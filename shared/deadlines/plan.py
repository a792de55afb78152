"""Choose what to hold at each moment to finish the work by the deadline at the lowest expected cost. Pure.

A table is filled backwards from the deadline. It has the lowest expected cost of the rest for each number of remaining
steps, each slack (the remaining time beyond the remaining work), each state of the pool, and each holding. A step
without nodes uses slack, and so does a change of nodes; a step of work does not. Dedicated nodes that work until their
successors are ready use no slack, but cost more.

Slack is counted above the reserve: the time in which dedicated nodes can be at work in the worst case. Below the
reserve, only dedicated nodes may be held, and the rest costs their price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from shared.deadlines.pool import AGES, Pool, kind_of_age

KINDS = len(AGES) + 1
NEVER = 1e9  # dollars
CELLS = 120  # of slack, about
FINEST = 5  # cells of slack for a step
HOUR = 3600.0
Row = list[float]


class NodeChoice(StrEnum):
    """What is held until the next look. `BOTH`: dedicated nodes at work, until low-priority ones are ready. `ONE`: a
    dedicated node beside what low-priority ones are left, so that the members' state outlives these.
    """

    NONE = "none"
    ONE = "one_dedicated"
    LOW = "low_priority"
    DEDICATED = "dedicated"
    BOTH = "both"


HELD = (NodeChoice.NONE, NodeChoice.LOW, NodeChoice.DEDICATED)


@dataclass(frozen=True)
class Terms:
    """The prices, in dollars per hour for all nodes, and the durations, in seconds.

    `change` is the time until new nodes work. `reserve` is the longest time until dedicated nodes work, from the moment
    they are needed (at least `change`). `step` is the time between two checks. `overlaps`: new nodes may become ready
    while others work.
    """

    low: float
    dedicated: float
    change: float
    step: float
    reserve: float
    overlaps: bool = True


@dataclass(frozen=True)
class WorkLeft:
    """The state of the work: seconds until the deadline, seconds of work left, what is held, what is available.

    `starting`: seconds until the requested nodes start to work. `age`: seconds for which the pool has provided nodes,
    or has provided none.
    """

    left: float
    work: float
    holds: NodeChoice
    available: bool
    age: float
    starting: float = 0.0

    @property
    def slack(self) -> float:
        return self.left - self.work


@dataclass(frozen=True)
class _Paid:
    low: Row
    dedicated: Row
    alone: Row
    never: Row


class Plan:
    """The lowest expected cost for every case within `left` seconds, with at most `slack` seconds of slack."""

    def __init__(self, terms: Terms, pool: Pool, left: float, slack: float) -> None:
        self.terms = terms
        spare = max(0.0, slack - terms.reserve)
        self._a_step = max(1, min(FINEST, int(CELLS * terms.step / max(spare, terms.step))))
        self._cell = terms.step / self._a_step
        self._width = int(spare / self._cell + 1e-9) + 1
        self._moves = [_moves(pool, state, terms.step) for state in range(2 * KINDS)]
        self._best: dict[tuple[int, int, NodeChoice], list[NodeChoice]] = {}
        zero = [0.0] * self._width
        self._values = [{hold: [zero] * (2 * KINDS) for hold in HELD}]
        for steps in range(1, max(1, math.ceil(left / terms.step)) + 1):
            paid = self._paid(steps)
            states = [self._choices(steps, state, paid) for state in range(2 * KINDS)]
            self._values.append({hold: [_least(choices[hold]) for choices in states] for hold in HELD})

    def best(self, standing: WorkLeft) -> NodeChoice:
        """What to hold until the next check, within the limits of the reserve."""
        steps, cell, state = self._place(standing)
        if cell < 0:
            return NodeChoice.DEDICATED
        key = steps, state, standing.holds
        if key not in self._best:
            self._best[key] = _cheapest(self._choices(steps, state, self._paid(steps))[_held(standing.holds)])
        return self._best[key][cell]

    def cost(self, standing: WorkLeft) -> float:
        """The expected cost of the remaining work, in dollars."""
        steps, cell, state = self._place(standing)
        if cell < 0:
            return self.terms.dedicated * standing.work / HOUR
        return self._values[steps][_held(standing.holds)][state][cell]

    def _place(self, standing: WorkLeft) -> tuple[int, int, int]:
        steps = min(len(self._values) - 1, max(1, int(standing.left / self.terms.step + 1e-9)))
        cell = math.floor((standing.slack - self.terms.reserve) / self._cell + 1e-9)
        return steps, min(cell, self._width - 1), standing.available * KINDS + kind_of_age(standing.age)

    def _paid(self, steps: int) -> _Paid:
        """The cost of this step, and the cost of dedicated nodes alone afterwards, for slack below the reserve."""
        terms = self.terms
        work = [max(0.0, min(1.0, steps - (terms.reserve + i * self._cell) / terms.step)) for i in range(self._width)]
        left = (steps - 1) * terms.step - terms.reserve
        below = range(-math.ceil(terms.change / self._cell), 0)
        return _Paid(
            [terms.low * terms.step / HOUR * part for part in work],
            [terms.dedicated * terms.step / HOUR * part for part in work],
            [terms.dedicated / HOUR * max(0.0, left - i * self._cell) for i in below],
            [NEVER for _ in below],
        )

    def _choices(self, steps: int, state: int, paid: _Paid) -> dict[NodeChoice, dict[NodeChoice, Row]]:
        """For each current holding and each choice, the cost until the end, by slack."""
        terms, available = self.terms, state >= KINDS
        idle = ([NEVER] * self._a_step + self._next(steps, state, NodeChoice.NONE))[: self._width]
        staying = self._next(steps, state, NodeChoice.DEDICATED)
        to_dedicated = {
            NodeChoice.NONE: idle,
            NodeChoice.DEDICATED: _sum(paid.dedicated, self._later(staying, paid.alone)),
        }
        on_dedicated = {NodeChoice.DEDICATED: _sum(paid.dedicated, staying), NodeChoice.NONE: idle}
        if not available:
            return {NodeChoice.NONE: to_dedicated, NodeChoice.LOW: to_dedicated, NodeChoice.DEDICATED: on_dedicated}
        riding = self._next(steps, state, NodeChoice.LOW)
        to_low = _sum(paid.low, self._later(riding, paid.never))
        on_dedicated[NodeChoice.LOW] = to_low
        if terms.overlaps:
            met = self._next(steps, state, NodeChoice.BOTH) if terms.change >= terms.step else riding
            share = min(1.0, terms.change / terms.step)
            on_dedicated[NodeChoice.BOTH] = _sum(_sum(paid.low, [share * cost for cost in paid.dedicated]), met)
        return {
            NodeChoice.NONE: {**to_dedicated, NodeChoice.LOW: to_low},
            NodeChoice.LOW: {**to_dedicated, NodeChoice.LOW: _sum(paid.low, riding)},
            NodeChoice.DEDICATED: on_dedicated,
        }

    def _next(self, steps: int, state: int, hold: NodeChoice) -> Row:
        """The expected cost of the rest after a step with this holding. Low-priority nodes may be gone by then."""
        values = self._values[steps - 1]
        (ends, other), (stays, same), (ages, older) = self._moves[state]
        if_lost = {NodeChoice.LOW: NodeChoice.NONE, NodeChoice.BOTH: NodeChoice.DEDICATED}.get(hold, hold)
        kept = NodeChoice.LOW if hold is NodeChoice.BOTH else hold
        rows = values[if_lost][other], values[kept][same], values[kept][older]
        return [ends * x + stays * y + ages * z for x, y, z in zip(*rows, strict=True)]

    def _later(self, row: Row, before: Row) -> Row:
        """The row after a change has used up slack; `before` extends the row to the left."""
        whole, part = divmod(self.terms.change / self._cell, 1)
        line = before + row
        first = len(before) - int(whole)
        near = line[first : first + self._width]
        if not part:
            return near
        return [(1 - part) * x + part * y for x, y in zip(near, line[first - 1 :], strict=False)]


def _moves(pool: Pool, state: int, step: float) -> tuple[tuple[float, int], ...]:
    """The possible states of the pool after a step, with their chances: the other kind, the same, the same but
    older.
    """
    available, kind = divmod(state, KINDS)
    ends = pool.chance(bool(available), kind, step)
    other = (1 - available) * KINDS
    if kind == KINDS - 1:
        return (ends, other), (1 - ends, state), (0.0, state)
    ages = min(1.0, step / (AGES[kind] - (AGES[kind - 1] if kind else 0.0)))
    return (ends, other), ((1 - ends) * (1 - ages), state), ((1 - ends) * ages, state + 1)


def _held(hold: NodeChoice) -> NodeChoice:
    return NodeChoice.DEDICATED if hold is NodeChoice.BOTH else hold


def _sum(costs: Row, rest: Row) -> Row:
    return [x + y for x, y in zip(costs, rest, strict=True)]


def _least(choices: dict[NodeChoice, Row]) -> Row:
    least, *others = choices.values()
    for row in others:
        least = [x if x < y else y for x, y in zip(least, row, strict=True)]
    return least


def _cheapest(choices: dict[NodeChoice, Row]) -> list[NodeChoice]:
    holds = list(choices)
    return [holds[costs.index(min(costs))] for costs in zip(*choices.values(), strict=True)]
