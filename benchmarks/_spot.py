"""One job on spot nodes, played against a trace of a pool's availability. No decision here sees the future.

A trace holds, for each step, whether the pool has a node. The policy learns this when the step begins, and it holds
until the step ends. New nodes start to work after `change` seconds, which are paid. Low-priority nodes are lost when
the pool has none. Dedicated nodes may keep working until their successors are ready, if the policy holds both; both are
then paid.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from shared.deadlines.plan import HOUR, NodeChoice, Terms, WorkLeft
from shared.deadlines.pool import PoolPeriod

Policy = Callable[[WorkLeft], NodeChoice]
LOST = {
    NodeChoice.LOW: NodeChoice.NONE,
    NodeChoice.BOTH: NodeChoice.DEDICATED,
}  # what is left when low-priority nodes are taken


@dataclass(frozen=True)
class Window:
    """A pool's availability from step `start` of its trace on (True: a node is available), and the known steps
    before."""

    pool: str
    start: int
    steps: Sequence[bool]
    before: Sequence[bool | None]


@dataclass(frozen=True)
class Outcome:
    """Dollars paid, and seconds left before the deadline when the job was done (negative if the job was not done)."""

    dollars: float
    spare: float


def read_windows(path: Path) -> tuple[float, dict[str, list[Window]]]:
    """Return the seconds of a step, and the windows of each pool. Steps before a window are known if another window
    covers them."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        data = json.load(file)
    windows = {}
    for pool, rows in data["pools"].items():
        trace: list[bool | None] = [None] * max(row["start"] + len(row["down"]) for row in rows)
        for row in rows:
            trace[row["start"] : row["start"] + len(row["down"])] = [down == "0" for down in row["down"]]
        windows[pool] = [
            Window(pool, row["start"], [down == "0" for down in row["down"]], trace[: row["start"]]) for row in rows
        ]
    return data["step_seconds"], windows


def spells(steps: Sequence[bool | None], seconds: float) -> Iterator[PoolPeriod]:
    """Yield the periods of a trace. The last period is still open; the end of a period before a gap is unknown."""
    runs = [(state, sum(1 for _ in same)) for state, same in groupby(steps)]
    afters = [state for state, _ in runs[1:]] + [None]
    for (state, length), after in zip(runs, afters, strict=False):
        if state is not None:
            yield PoolPeriod(state, length * seconds, after is not None)


def age_at_start(window: Window) -> int:
    """Return for how many steps the pool has been in its present state when the window begins."""
    same = 0
    for state in reversed(window.before):
        if state is not window.steps[0]:
            break
        same += 1
    return same


def play(policy: Policy, window: Window, terms: Terms, left: float, work: float, money: float = math.inf) -> Outcome:
    """Play a job that needs `work` seconds and has `left` seconds until its deadline."""
    return play_regions(policy, (window,), terms, left, work, money)


def play_regions(
    policy: Policy, windows: Sequence[Window], terms: Terms, left: float, work: float, money: float = math.inf
) -> Outcome:
    """Play the same job with several pools. When the job's pool takes the node away, the next node comes from the
    pool that has had nodes longest."""
    holds, starting, dollars, here = NodeChoice.NONE, 0.0, 0.0, 0
    ages = [age_at_start(window) for window in windows]
    for number in range(len(windows[0].steps)):
        if left <= 0:
            break
        there = [window.steps[number] for window in windows]
        same = [not number or window.steps[number] is window.steps[number - 1] for window in windows]
        ages = [age + 1 if is_same else 1 for age, is_same in zip(ages, same, strict=True)]
        if holds in LOST and not there[here]:
            holds, starting = LOST[holds], 0.0
        if holds not in LOST:
            here = max(range(len(windows)), key=lambda pool: (there[pool], ages[pool]))
        chosen = policy(WorkLeft(left, work, holds, there[here], ages[here] * terms.step, starting, money - dollars))
        assert there[here] or chosen not in LOST, f"{chosen} was chosen in a step without nodes"
        step = step_of(terms, chosen, holds, starting, work)
        dollars, work = dollars + step.dollars, step.work
        if work <= 1e-6:
            return Outcome(dollars, left - step.used)
        holds, starting, left = step.holds, step.starting, left - terms.step
    return Outcome(dollars, -work)


def seconds_to_start(terms: Terms, chosen: NodeChoice, holds: NodeChoice, starting: float) -> float:
    """Return the seconds until the chosen nodes work, where the nodes held until now need `starting`."""
    if chosen is NodeChoice.NONE or (holds is NodeChoice.BOTH and chosen is NodeChoice.DEDICATED):
        return 0.0
    return starting if chosen is holds or (holds is NodeChoice.BOTH and chosen is NodeChoice.LOW) else terms.change


def held_after(terms: Terms, chosen: NodeChoice, starting: float) -> NodeChoice:
    """Return what is held at the next step. Dedicated nodes end with the change, unless the next step may keep them."""
    return NodeChoice.LOW if chosen is NodeChoice.BOTH and not starting and not terms.holds_both else chosen


@dataclass(frozen=True)
class Step:
    """One step of a job. `work` is left after it, in seconds; `used` are the seconds for which nodes are paid, and
    `starting` the seconds until the nodes that are held afterwards begin to work."""

    work: float
    dollars: float
    used: float
    holds: NodeChoice
    starting: float


def step_of(terms: Terms, chosen: NodeChoice, holds: NodeChoice, starting: float, work: float) -> Step:
    """Play one step with the chosen nodes."""
    starting = seconds_to_start(terms, chosen, holds, starting)
    lost = min(starting, terms.step) if chosen is not NodeChoice.BOTH else 0.0
    used = 0.0 if chosen is NodeChoice.NONE else min(terms.step, work + lost)
    dollars = price(terms, chosen, used, starting) / HOUR
    starting = max(0.0, starting - terms.step)
    return Step(work - max(0.0, used - lost), dollars, used, held_after(terms, chosen, starting), starting)


def price(terms: Terms, chosen: NodeChoice, used: float, starting: float) -> float:
    if chosen is NodeChoice.BOTH:
        together = min(starting, used) if starting else used
        return terms.low * used + terms.dedicated * together
    return used * (terms.dedicated if chosen is NodeChoice.DEDICATED else terms.low)


def bound(window: Window, terms: Terms, left: float, work: float) -> float:
    """Return the least possible cost in dollars: with full knowledge of the future, and with free changes of nodes."""
    low = min(work, sum(window.steps[: int(left // terms.step)]) * terms.step)
    return (low * terms.low + (work - low) * terms.dedicated) / HOUR
