"""Four nodes that train together, each on its own pool: members that stay, compared with a team that restarts.

Members that stay: when a node joins or leaves, only that node pays for the change, and the others work on. Each member
decides as for a quarter of the remaining work. A team that restarts has four low-priority nodes, four dedicated nodes
or none, as in section 5.5 of Wu et al. (NSDI 2024). The team decides as our policy does for one node that all four
pools have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks._spot import LOST, Outcome, Policy, Window, age_at_start, held_after, play, price, seconds_to_start
from shared.deadlines.decide import choose
from shared.deadlines.plan import HOUR, NodeChoice, Plan, Terms, WorkLeft
from shared.deadlines.pool import Pool

NODES = 4


@dataclass
class _Member:
    window: Window
    age: int
    holds: NodeChoice = NodeChoice.NONE
    starting: float = 0.0

    def step(self, number: int, policy: Policy, left: float, work: float, terms: Terms) -> tuple[float, float]:
        """Decide for one step. Return the step's seconds of work and its dollars."""
        available = self.window.steps[number]
        self.age = self.age + 1 if not number or available is self.window.steps[number - 1] else 1
        if not available and self.holds in LOST:
            self.holds, self.starting = LOST[self.holds], 0.0
        chosen = policy(WorkLeft(left, work, self.holds, available, self.age * terms.step, self.starting))
        starting = seconds_to_start(terms, chosen, self.holds, self.starting)
        lost = min(starting, terms.step) if chosen is not NodeChoice.BOTH else 0.0
        self.starting = max(0.0, starting - terms.step)
        self.holds = held_after(terms, chosen, self.starting)
        if chosen is NodeChoice.NONE:
            return 0.0, 0.0
        return terms.step - lost, price(terms, chosen, terms.step, starting) / HOUR


def play_members(policy: Policy, windows: Sequence[Window], terms: Terms, left: float, work: float) -> Outcome:
    """Play a job that needs `work` seconds on all members and has `left` seconds until its deadline."""
    members = [_Member(window, age_at_start(window)) for window in windows]
    dollars, rest = 0.0, work * len(members)
    for number in range(len(windows[0].steps)):
        if left <= 0:
            break
        steps = [member.step(number, policy, left, rest / len(members), terms) for member in members]
        done, cost = sum(seconds for seconds, _ in steps), sum(paid for _, paid in steps)
        if rest <= done:
            return Outcome(dollars + cost * rest / done, left - terms.step * rest / done)
        rest, dollars, left = rest - done, dollars + cost, left - terms.step
    return Outcome(dollars, -rest)


def restart_over_stay(pools: Sequence[Sequence[Window]], terms: Terms, left: float, work: float) -> list[float]:
    """Return, for each window that all four pools share, the cost of a restarting team divided by the cost of
    staying members."""
    alone = replace(terms, overlaps=False)
    staying, restarting = (partial(choose, Plan(each, Pool(), left, left - work)) for each in (terms, alone))
    ratios = []
    for windows in zip(*pools, strict=False):
        together = [all(states) for states in zip(*(window.steps for window in windows), strict=True)]
        team = play(restarting, Window("all", 0, together, ()), alone, left, work)
        members = play_members(staying, windows, terms, left, work)
        assert min(team.spare, members.spare) >= -1e-6, "late"
        ratios.append(NODES * team.dollars / members.dollars)
    return ratios
