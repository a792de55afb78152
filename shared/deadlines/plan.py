"""Choose what to hold at each moment to finish the work by the deadline at the lowest expected cost. Pure.

A table is filled backwards from the deadline. It has the lowest expected cost of the rest for each number of remaining
steps, each slack (the remaining time beyond the remaining work), each state of the pool, and each holding. A step
without nodes uses slack, and so does a change of nodes; a step of work does not. Dedicated nodes that work until their
successors are ready use no slack, but cost more. While both are held, the work may also stay on the dedicated nodes, if
the low-priority nodes are likely to be lost soon.

Slack is counted above the reserve: the time in which dedicated nodes can be at work in the worst case. Below the
reserve, only dedicated nodes may be held, and the rest costs their price.

The plan keeps its choices, a byte each, and the expected costs of its first steps. A second table has the highest cost
of following these choices, with the maximum over what the pool may do in place of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from operator import add, lt

from shared.deadlines.pool import KINDS, Pool, kind_of_age, moves

NEVER = 1e9  # dollars
CELLS = 120  # of slack, about
FINEST = 5  # cells of slack for a step
AT_WORST = 1.1  # times the cost of dedicated nodes alone; with 1.05, no cost on the traces of `bench deadline` differs
HOUR = 3600.0
Row = list[float]


class NodeChoice(StrEnum):
    """The nodes until the next check. `BOTH`: dedicated nodes at work, until low-priority nodes are ready. `ONE`: a
    dedicated node beside the remaining low-priority nodes, to keep the members' state if the low-priority nodes are
    evicted.
    """

    NONE = "none"
    ONE = "one_dedicated"
    LOW = "low_priority"
    DEDICATED = "dedicated"
    BOTH = "both"


HELD = (NodeChoice.NONE, NodeChoice.LOW, NodeChoice.DEDICATED, NodeChoice.BOTH)
_LOST = {NodeChoice.LOW: NodeChoice.NONE, NodeChoice.BOTH: NodeChoice.DEDICATED}  # what remains if the pool has none
_TO_LOW = (NodeChoice.NONE, NodeChoice.DEDICATED, NodeChoice.LOW)
_OFF_DEDICATED = (NodeChoice.DEDICATED, NodeChoice.NONE, NodeChoice.LOW, NodeChoice.BOTH)
# The choices by what is held, in the order in which the plan prefers them if they cost the same: if the pool has nodes,
# and if it has no nodes.
_WITH_POOL = {
    NodeChoice.NONE: _TO_LOW,
    NodeChoice.LOW: _TO_LOW,
    NodeChoice.DEDICATED: _OFF_DEDICATED,
    NodeChoice.BOTH: _OFF_DEDICATED,
}
_WITHOUT_POOL = {held: choices[:2] for held, choices in _WITH_POOL.items()}


@dataclass(frozen=True)
class Terms:
    """Prices in dollars per hour for all nodes, and durations in seconds.

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

    @property
    def holds_both(self) -> bool:
        """Whether a check may find both at work: the new low-priority nodes, and dedicated nodes that may stay."""
        return self.overlaps and self.change >= self.step


@dataclass(frozen=True)
class WorkLeft:
    """The state of the work: seconds until the deadline, seconds of work left, held nodes, available nodes.

    `starting`: seconds until the requested nodes start to work. `age`: seconds for which the pool has provided nodes,
    or has provided none. `money`: dollars that the rest may cost at most.
    """

    left: float
    work: float
    holds: NodeChoice
    available: bool
    age: float
    starting: float = 0.0
    money: float = math.inf

    @property
    def slack(self) -> float:
        return self.left - self.work


@dataclass(frozen=True)
class _Costs:
    """The costs until the end by slack: expected, for each state of the pool and each holding; and the highest, for a
    pool without nodes and with nodes, of any age.
    """

    mean: list[dict[NodeChoice, Row]]
    worst: list[dict[NodeChoice, Row]]


@dataclass(frozen=True)
class _Paid:
    """The costs of one step on each tier, by slack, and, for slack below the reserve, the cost of dedicated nodes alone
    afterwards.
    """

    low: Row
    dedicated: Row
    alone: Row
    never: Row


class Plan:
    """The cheapest choice for every case within `left` seconds, with at most `slack` seconds of slack.

    `worst` is the highest cost, in dollars, whatever the pool does, if choices that could exceed this cost are not made
    (decide.is_affordable): at most AT_WORST times the cost of dedicated nodes alone.
    """

    def __init__(self, terms: Terms, pool: Pool, left: float, slack: float) -> None:
        self.terms = terms
        spare = max(0.0, slack - terms.reserve)
        self._a_step = max(1, min(FINEST, int(CELLS * terms.step / max(spare, terms.step))))
        self._cell = terms.step / self._a_step
        self._width = int(spare / self._cell + 1e-9) + 1
        self._moves = [moves(pool, state, terms.step) for state in range(2 * KINDS)]
        zero = [0.0] * self._width
        self._choices: list[list[dict[NodeChoice, bytes]]] = [[]]
        nothing = dict.fromkeys(HELD, zero)
        self._costs = [_Costs([nothing] * (2 * KINDS), [nothing] * 2)]
        for steps in range(1, max(1, math.ceil(left / terms.step)) + 1):
            self._costs = [*self._costs[-1:], self._step_back(steps, self._costs[-1])]
        self.worst = self._worst(left, slack)

    @cached_property
    def size(self) -> int:
        """The bytes of the tables, which never change. To count them takes milliseconds."""
        states = (state for step in self._choices for state in step)
        return sum(len(choices) for state in states for choices in {id(each): each for each in state.values()}.values())

    def best(self, now: WorkLeft) -> NodeChoice:
        """The nodes to hold until the next check, within the limits of the reserve."""
        steps, cell, state = self._place(now)
        if cell < 0:
            return NodeChoice.DEDICATED
        held = _held(now)
        choices = _WITH_POOL if now.available else _WITHOUT_POOL
        return choices[held][self._choices[steps][state][held][cell]]

    def cost(self, now: WorkLeft) -> float:
        """The expected cost of the work, in dollars, at the beginning: within the first step."""
        steps, cell, state = self._place(now)
        if cell < 0:
            return self.terms.dedicated * now.work / HOUR
        return self._costs[steps - len(self._choices)].mean[state][_held(now)][cell]

    def _worst(self, left: float, slack: float) -> float:
        """The highest cost of the work without nodes at the beginning, if dedicated nodes take up to the reserve."""
        alone = self.terms.dedicated * (left - slack + self.terms.reserve) / HOUR
        if slack < self.terms.reserve:
            return alone
        late = self.terms.dedicated * (self.terms.reserve - self.terms.change) / HOUR
        highest = max(each[NodeChoice.NONE][-1] + late for each in self._costs[-1].worst)
        return min(max(alone, highest), AT_WORST * alone)

    def _place(self, now: WorkLeft) -> tuple[int, int, int]:
        steps = min(len(self._choices) - 1, max(1, int(now.left / self.terms.step + 1e-9)))
        cell = math.floor((now.slack - self.terms.reserve) / self._cell + 1e-9)
        return steps, min(cell, self._width - 1), now.available * KINDS + kind_of_age(now.age)

    def _step_back(self, steps: int, after: _Costs) -> _Costs:
        """The costs with one more step, computed from the costs after this step. Keeps the choices."""
        paid = self._paid(steps)
        before, chosen = _Costs([], []), list[dict[NodeChoice, bytes]]()
        for state in range(2 * KINDS):
            options = self._options(state >= KINDS, paid, partial(self._mean, after.mean, state), self._mixed)
            rows, codes = dict[NodeChoice, Row](), dict[NodeChoice, bytes]()
            for held, costs in options.items():
                if held in _LOST and state < KINDS:  # the pool has none: as without low-priority nodes
                    rows[held], codes[held] = rows[_LOST[held]], codes[_LOST[held]]
                else:
                    rows[held], codes[held] = _least(costs)
            before.mean.append(rows)
            chosen.append(codes)
        self._choices.append(chosen)
        for available in (False, True):
            highest = partial(_highest, after.worst, available)
            options = self._options(available, paid, highest, _higher)
            states = chosen[KINDS:] if available else chosen[:KINDS]
            before.worst.append({held: _most(options[held], [each[held] for each in states]) for held in HELD})
        return before

    def _paid(self, steps: int) -> _Paid:
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

    def _options(
        self,
        available: bool,
        paid: _Paid,
        rest: Callable[[NodeChoice], Row],
        between: Callable[[float, Row, Row], Row],
    ) -> dict[NodeChoice, list[Row]]:
        """For each holding, the cost until the end of each choice, by slack, in the order of the choices.

        `rest`: the cost of the rest after a step with this holding. `between`: the cost between two cells of slack.
        """
        terms = self.terms
        idle = ([NEVER] * self._a_step + rest(NodeChoice.NONE))[: self._width]
        staying = rest(NodeChoice.DEDICATED)
        to_dedicated = _sum(paid.dedicated, self._later(staying, paid.alone, between))
        without, on_dedicated = [idle, to_dedicated], [_sum(paid.dedicated, staying), idle]
        if not available:
            return {
                NodeChoice.NONE: without,
                NodeChoice.LOW: without,
                NodeChoice.DEDICATED: on_dedicated,
                NodeChoice.BOTH: on_dedicated,
            }
        later = rest(NodeChoice.LOW)
        to_low, on_low = _sum(paid.low, self._later(later, paid.never, between)), _sum(paid.low, later)
        both = list[Row]()
        if terms.overlaps:
            met = rest(NodeChoice.BOTH) if terms.holds_both else later
            share = min(1.0, terms.change / terms.step)
            both = [_sum(_sum(paid.low, [share * cost for cost in paid.dedicated]), met)]
        return {
            NodeChoice.NONE: [*without, to_low],
            NodeChoice.LOW: [*without, on_low],
            NodeChoice.DEDICATED: [*on_dedicated, to_low, *both],
            NodeChoice.BOTH: [*on_dedicated, on_low],
        }

    def _mean(self, costs: list[dict[NodeChoice, Row]], state: int, hold: NodeChoice) -> Row:
        """The expected cost of the rest after a step with this holding. Low-priority nodes may be gone by then."""
        (ends, other), (stays, same), (ages, older) = self._moves[state]
        rows = costs[other][_LOST.get(hold, hold)], costs[same][hold], costs[older][hold]
        return [ends * x + stays * y + ages * z for x, y, z in zip(*rows, strict=True)]

    def _later(self, row: Row, before: Row, between: Callable[[float, Row, Row], Row]) -> Row:
        """The row after a change has used up slack; `before` extends the row to the left."""
        whole, part = divmod(self.terms.change / self._cell, 1)
        line = before + row
        first = len(before) - int(whole)
        near = line[first : first + self._width]
        return between(part, near, line[first - 1 :]) if part else near

    @staticmethod
    def _mixed(part: float, near: Row, less: Row) -> Row:
        return [(1 - part) * x + part * y for x, y in zip(near, less, strict=False)]


def _held(now: WorkLeft) -> NodeChoice:
    """The holding of the tables. Until the low-priority nodes are ready, it is that of dedicated nodes alone."""
    return NodeChoice.DEDICATED if now.holds is NodeChoice.BOTH and now.starting else now.holds


def _sum(costs: Row, rest: Row) -> Row:
    return list(map(add, costs, rest))


def _higher(_part: float, near: Row, less: Row) -> Row:
    return [x if x > y else y for x, y in zip(near, less, strict=False)]


def _highest(costs: list[dict[NodeChoice, Row]], available: bool, hold: NodeChoice) -> Row:
    """The highest cost of the rest after a step with this holding, if the pool changes and if it does not."""
    return _higher(0.0, costs[not available][_LOST.get(hold, hold)], costs[available][hold])


def _least(costs: list[Row]) -> tuple[Row, bytes]:
    """The lowest cost for each slack, and the number of the cheapest choice (the first among equals)."""
    least, codes = costs[0], 0  # the codes are the bytes of one number, so that a few operations change all of them
    for number, row in enumerate(costs[1:], start=1):
        less = int.from_bytes(bytes(map(lt, row, least)))
        codes = (codes | less * 0xFF) ^ (less * (0xFF ^ number))
        least = [x if x < y else y for x, y in zip(row, least, strict=True)]
    return least, codes.to_bytes(len(least))


def _most(costs: list[Row], chosen: list[bytes]) -> Row:
    """The highest cost of the chosen nodes for each slack, over the states of the pool."""
    first, *others = ([costs[code][cell] for cell, code in enumerate(codes)] for codes in set(chosen))
    for row in others:
        first = _higher(0.0, first, row)
    return first
