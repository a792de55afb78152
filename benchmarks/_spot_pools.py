"""One job that may use any of several pools, and knows of them what Trainyard knows.

The job sees a pool while it works or asks for nodes there. An ask takes a step, and costs nothing if the pool has no
nodes. A job on dedicated nodes asks without a pause. Other runs may see each pool, at random moments.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks._spot import LOST, Outcome, Window, bound, step_of
from shared.deadlines.decide import choose, is_safe
from shared.deadlines.plan import HOUR, NEVER, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool
from shared.deadlines.pools import LIKELY, Sighting, as_one, best_pool, prospect, seen

ON_LOW = (NodeChoice.LOW, NodeChoice.BOTH)
PLAYERS = ("in turn", "ours", "ours, hourly", "known", "foreseen")
CELL = 60.0  # seconds of slack, of a player who knows the future


@dataclass
class Knowledge:
    """What a job knows of its pools. `looks`: the chance that another run sees a pool in a step."""

    pools: dict[str, Pool]
    change: float
    step: float
    looks: float = 0.0
    in_turn: bool = False  # whether the job asks one pool after the other, and believes each for twice the change
    sightings: dict[str, Sighting] = field(default_factory=dict)
    sure: set[str] = field(default_factory=set)  # the pools seen in this step
    turn: int = 0
    asked: int = 0  # asks in vain, one after the other

    def see(self, name: str, there: bool, now: float) -> None:
        self.sightings[name] = seen(self.sightings.get(name), there, now)
        self.sure.add(name)

    def best(self, now: float) -> str:
        if self.in_turn:
            return list(self.pools)[self.turn % len(self.pools)]
        asked = self.pools
        if self.looks < 1:  # a pool seen without nodes in this step is not asked again in the step
            left = {name: pool for name, pool in asked.items() if name not in self.sure or self.has_now(name)}
            asked = left or asked
        return best_pool(asked, self.sightings, now, self.change, self.step)

    def has_now(self, name: str) -> bool:
        return name in self.sure and self.sightings[name].available

    def is_likely(self, name: str, now: float) -> bool:
        """Whether a job counts on nodes of this pool."""
        if name in self.sure:
            return self.has_now(name)
        return self.in_turn or prospect(self.pools[name], self.sightings.get(name), now, self.change).chance >= LIKELY

    def age(self, name: str, now: float) -> float:
        """Seconds for which the pool has been seen with nodes."""
        sighting = self.sightings.get(name)
        return now - sighting.since + self.step if sighting and sighting.available else self.step

    def asked_in_vain(self) -> None:
        self.asked += 1
        if self.asked * self.step >= 2 * self.change:
            self.turn, self.asked = self.turn + 1, 0


@dataclass
class Player:
    """Plays one window of each pool. The pools are named by their numbers."""

    plan: Plan
    knows: Knowledge
    windows: Sequence[Window]
    holds: NodeChoice = NodeChoice.NONE
    here: str = ""
    lost_at: float = 0.0

    def play(self, left: float, work: float) -> Outcome:
        terms, starting, dollars = self.plan.terms, 0.0, 0.0
        dice = random.Random(3)
        for number in range(len(self.windows[0].steps)):
            if left <= 0:
                break
            now = number * terms.step
            there = {name: self.windows[int(name)].steps[number] for name in self.knows.pools}
            self.knows.sure.clear()
            for name in there:
                if dice.random() < self.knows.looks:
                    self.knows.see(name, there[name], now)
            if self.holds in ON_LOW:
                self.knows.see(self.here, there[self.here], now)
                if not there[self.here]:
                    self.holds, starting, self.lost_at = LOST[self.holds], 0.0, now
            chosen = self.choose(WorkLeft(left, work, self.holds, True, 0.0, starting), there, now)
            step = step_of(terms, chosen, self.holds, starting, work)
            dollars, work = dollars + step.dollars, step.work
            if work <= 1e-6:
                return Outcome(dollars, left - step.used)
            self.holds, starting, left = step.holds, step.starting, left - terms.step
        return Outcome(dollars, -work)

    def choose(self, state: WorkLeft, there: dict[str, bool], now: float) -> NodeChoice:
        if self.holds in ON_LOW:
            return choose(self.plan, replace(state, age=self.knows.age(self.here, now)))
        name = self.knows.best(now)
        with_nodes = choose(self.plan, replace(state, age=self.knows.age(name, now)))
        age = now - self.lost_at + self.plan.terms.step
        without = choose(self.plan, replace(state, available=False, age=age))
        if self.holds is NodeChoice.DEDICATED:
            if self.knows.has_now(name):
                return self.moved(name, with_nodes)
            asks = with_nodes is NodeChoice.BOTH and name not in self.knows.sure
            return self.moved(name, with_nodes) if asks and self.ask(name, there, now) else without
        chosen = with_nodes if self.knows.is_likely(name, now) else without
        if chosen is NodeChoice.DEDICATED or self.knows.has_now(name):
            return self.moved(name, chosen)
        if not is_safe(self.plan.terms, state, NodeChoice.NONE):
            return NodeChoice.DEDICATED
        got = name not in self.knows.sure and self.ask(name, there, now) and with_nodes in ON_LOW
        return self.moved(name, with_nodes) if got else NodeChoice.NONE

    def ask(self, name: str, there: dict[str, bool], now: float) -> bool:
        self.knows.see(name, there[name], now)
        if there[name]:
            self.knows.asked = 0
        else:
            self.knows.asked_in_vain()
        return there[name]

    def moved(self, name: str, chosen: NodeChoice) -> NodeChoice:
        if chosen in ON_LOW:
            self.here = name
        return chosen


def foreseen(windows: Sequence[Window], terms: Terms, left: float, work: float) -> float:
    """Return the least cost in dollars of a player who knows the future of all pools, pays for changes of nodes and
    keeps the same reserve."""
    steps = int(left / terms.step + 1e-9)
    width = int((left - work - terms.reserve) / CELL + 1e-9) + 1
    of_step, of_change = int(terms.step / CELL), int(terms.change / CELL)
    slack = np.arange(width) * CELL + terms.reserve
    share = min(1.0, terms.change / terms.step)

    def later(costs: np.ndarray, cells: int) -> np.ndarray:
        return np.concatenate([np.full(cells, NEVER), costs])[:width]

    none = dedicated = np.zeros(width)
    low = [none for _ in windows]
    for number in reversed(range(steps)):
        part = np.clip(((steps - number) * terms.step - slack) / terms.step, 0, 1) * terms.step / HOUR
        up = [each.steps[number] for each in windows]
        working = [terms.low * part + costs for costs in low]
        starts = [terms.low * part + later(costs, of_change) for costs, there in zip(low, up, strict=True) if there]
        beside = [
            terms.dedicated * share * part + costs
            for costs, there in zip(working, up, strict=True)
            if there and terms.overlaps
        ]
        none = np.minimum.reduce([later(none, of_step), terms.dedicated * part + later(dedicated, of_change), *starts])
        dedicated = np.minimum.reduce([none, terms.dedicated * part + dedicated, *beside])
        low = [np.minimum(none, costs) if there else none for costs, there in zip(working, up, strict=True)]
    return float(none[-1])


def together(windows: Sequence[Window]) -> Window:
    """Return a pool that has a node whenever at least one of these pools has a node."""
    return Window("any", 0, [any(states) for states in zip(*(each.steps for each in windows), strict=True)], ())


def shares_of_time(windows: Sequence[Window]) -> float:
    """Return the share of the time for which the pool has nodes, over its windows."""
    return sum(sum(each.steps) for each in windows) / sum(len(each.steps) for each in windows)


def over_the_least(pools: Sequence[Sequence[Window]], terms: Terms, left: float, work: float) -> dict[str, list[float]]:
    """Return, for each player, the costs divided by the least possible cost with any of the pools.

    - in turn: asks one pool after the other, each for two changes, with the plan of one pool
    - ours: asks the most promising pool, and knows what it saw itself. Hourly: other runs see each pool once an hour
    - known: the state of each pool is known at each step
    - foreseen: knows the future of all pools
    """
    models = {str(number): Pool() for number in range(len(pools))}
    one, several = (Plan(terms, pool, left, left - work) for pool in (Pool(), as_one([*models.values()], terms.change)))
    ratios: dict[str, list[float]] = {name: [] for name in PLAYERS}
    for windows in zip(*pools, strict=False):
        least = bound(together(windows), terms, left, work)
        for name, looks in zip(PLAYERS[:4], (0.0, 0.0, terms.step / HOUR, 1.0), strict=True):
            knows = Knowledge(models, terms.change, terms.step, looks, name == PLAYERS[0])
            outcome = Player(one if knows.in_turn else several, knows, windows).play(left, work)
            assert outcome.spare >= -1e-6, f"late: {name}"
            ratios[name].append(outcome.dollars / least)
        ratios[PLAYERS[-1]].append(foreseen(windows, terms, left, work) / least)
    return ratios
