"""The worst cost of a job with a deadline: pools that work against the job, compared with the announced cost.

python3 trainyard.py bench deadline_worst [--quick] [--json] [--jobs N] [--seed N]

Each job, of 1 to 24 hours in the app's own terms, is played on 200 pools. A pool repeats a pattern, gains and loses
nodes at random, or reacts to the job: it takes the nodes away some checks after they were chosen, and offers others
some checks later. The benchmark fails if a job misses its deadline or costs more than announced.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks._options import options
from benchmarks._spot import Outcome, Policy, Window, play
from shared.deadlines.decide import choose
from shared.deadlines.outlook import terms_of
from shared.deadlines.plan import HOUR, NodeChoice, Plan, WorkLeft
from shared.deadlines.pool import Pool, PoolPeriod, learn

LOW, DEDICATED = 0.97, 3.06  # dollars an hour
POOLS = 200


@dataclass(frozen=True)
class Job:
    """A job that needs `work` seconds and has `left` seconds until its deadline, with its plan."""

    left: float
    work: float
    plan: Plan

    @classmethod
    def of(
        cls, left: float, work: float, change: float, overlaps: bool, low: float = LOW, pool: Pool | None = None
    ) -> Job:
        terms = terms_of(low, DEDICATED, change, left, overlaps)
        return cls(left, work, Plan(terms, pool or Pool(), left, left - work))

    @classmethod
    def drawn(cls, dice: random.Random) -> Job:
        work = dice.choice((1, 3, 8, 24)) * HOUR * dice.uniform(0.8, 1.2)
        change = min(dice.choice((60.0, 180.0, 300.0, 720.0)), work / 6)
        left = work * dice.choice((1.1, 1.3, 2.0, 3.0)) + 4 * change + 600
        periods = [PoolPeriod(dice.random() < 0.5, dice.choice((600.0, 7200.0, 40000.0))) for _ in range(60)]
        low = LOW * dice.choice((0.3, 1.0, 2.5))
        return cls.of(left, work, change, dice.random() < 0.5, low, dice.choice((Pool(), learn(periods))))

    @property
    def alone(self) -> float:
        """Cost in dollars of dedicated nodes alone, with one change of nodes."""
        return self.plan.terms.dedicated * (self.work + self.plan.terms.change) / HOUR

    @property
    def looks(self) -> int:
        return math.ceil(self.left / self.plan.terms.step) + 1

    def play(self, states: list[bool], policy: Policy | None = None) -> Outcome:
        policy = policy or partial(choose, self.plan)
        return play(policy, Window("", 0, states, ()), self.plan.terms, self.left, self.work, self.plan.worst)


def repeats(looks: int, up: int, down: int) -> list[bool]:
    return [look % (up + down) < up for look in range(looks)]


def spite(plan: Plan, states: list[bool], works: int, away: int) -> Policy:
    """Return the plan's policy, coupled with a pool that takes nodes away `works` checks after they were chosen,
    for `away` checks."""
    look = held = gone = 0

    def policy(now: WorkLeft) -> NodeChoice:
        nonlocal look, held, gone
        chosen = choose(plan, now)
        held = held + 1 if chosen in (NodeChoice.LOW, NodeChoice.BOTH) else 0
        gone = away if held >= works else max(0, gone - 1)
        look += 1
        states[look:] = [not gone] * (len(states) - look)
        return chosen

    return policy


def played(job: Job, dice: random.Random, pools: int = POOLS) -> Iterator[Outcome]:
    for number in range(pools):
        if number % 3 == 0:
            yield job.play(repeats(job.looks, dice.randint(1, 12), dice.randint(1, 12)))
        elif number % 3 == 1:
            share = dice.random()
            yield job.play([dice.random() < share for _ in range(job.looks)])
        else:
            states = [True] * job.looks
            yield job.play(states, spite(job.plan, states, dice.randint(1, 8), dice.randint(1, 4)))


def main(argv: list[str] | None = None) -> None:
    parser = options(__doc__, "five jobs")
    parser.add_argument("--jobs", type=int, default=50, help="how many jobs, each on 200 pools; default 50")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    dice = random.Random(asked.seed)
    of_announced, of_alone, announced = [], [], []
    for _ in range(5 if asked.quick else asked.jobs):
        job = Job.drawn(dice)
        announced.append(job.plan.worst / job.alone)
        for outcome in played(job, dice):
            assert outcome.spare >= -1e-6, f"late: {job}"
            of_announced.append(outcome.dollars / job.plan.worst)
            of_alone.append(outcome.dollars / job.alone)
    print(
        f"{len(of_announced):,} plays: at most {max(of_announced):.3f} of the announced cost, which was "
        f"{min(announced):.2f} to {max(announced):.2f} of dedicated nodes alone; "
        f"{sum(ratio > 1 for ratio in of_alone):,} plays cost more than these, up to {max(of_alone):.2f} times"
    )
    assert max(of_announced) <= 1 + 1e-9, "a job cost more than was announced"
    if asked.json:
        print(json.dumps({"plays": len(of_announced), "of_announced": max(of_announced), "of_alone": max(of_alone)}))


if __name__ == "__main__":
    main()
