"""Simulated runs in which one node becomes slow: whether and how soon the slow node is named.

The other nodes wait for the slow node, so a step takes as long as on the slow node. With gloo, the waiting nodes are
idle; with NCCL, their GPUs spin. Steps vary by a fifth, processors are shared with other programs, and samples and
checks come late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

from benchmarks._healthy_runs import BEGAN
from shared.diagnosis.causes import Cause
from shared.diagnosis.live import ailments
from shared.diagnosis.observed import Observed
from shared.kernel.storage import Growth
from shared.runs.pulse import NodePulse, Pulse

SLOW_FOR = 1_500  # seconds


class SlowNode:
    """A run in which, after some minutes, one node needs three to ten times as long for its part of a step."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.nodes, self.gpus = dice.choice((2, 2, 3, 4)), dice.random() < 0.5
        self.victim, self.factor = dice.randrange(self.nodes), dice.uniform(3, 10)
        self.step_seconds, self.every = dice.choice((0.3, 1.0, 4.0, 12.0)), dice.choice((1, 1, 5))
        self.began = dice.randint(600, 1_500)
        self.share = dice.uniform(0.25, 1.0)  # the run's share of a busy machine's processor
        self.late = dice.choice((60, 120, 180))  # seconds until a minute's sample arrives
        self.lines = list(self.steps())

    def steps(self) -> Iterator[tuple[float, str]]:
        """Yield the time and the text of each log line."""
        at, step = 30.0, 0
        while at < self.began + SLOW_FOR:
            slow = self.factor if at >= self.began else 1.0
            at, step = at + self.step_seconds * slow * self.dice.uniform(0.8, 1.25), step + 1
            if step % self.every == 0:
                yield at, f"epoch 1 step {step}/90000 loss {3 / (1 + step / 900):.4f}\n"

    def pulses(self) -> Iterator[tuple[float, Pulse]]:
        """Yield the second and the pulse of each check. A busy machine checks late."""
        seen, now = Observed(), self.dice.uniform(0, 60)
        while now < self.began + SLOW_FOR:
            shown = [(at, line) for at, line in self.lines if at <= now]
            data = "".join(line for _, line in shown).encode()
            at = BEGAN + timedelta(seconds=shown[-1][0] if shown else 0)
            if seen.wants_list:
                seen = seen.listed("logs", {0: ("log", len(data), at)} if data else {})
            else:
                seen = seen.read(Growth(data[seen.at :], len(data), at))
            yield now, seen.pulse(BEGAN, BEGAN + timedelta(seconds=now), tuple(self.measured(now)))
            now += self.dice.uniform(60, 80)

    def measured(self, now: float) -> Iterator[NodePulse]:
        """Yield the samples of the last ten minutes that have arrived."""
        last = int((now - self.late) // 60)
        minutes = range(max(0, last - 10), last)
        for number in range(self.nodes):
            if minutes:
                cores, gpu = zip(*(self.minute(number, 60 * each) for each in minutes), strict=True)
                at = BEGAN + timedelta(seconds=60 * minutes[-1])
                yield NodePulse(f"n{number}", at, cores, 8.0, gpu if self.gpus else (), 1.0)

    def minute(self, number: int, begin: int) -> tuple[float, float]:
        """Return the busy processors and the GPU percent of a node in one minute."""
        slow = min(1.0, max(0.0, (begin + 60 - self.began) / 60))
        waits = slow * (1 - 1 / self.factor) if number != self.victim else 0.0
        cores = self.share * (1 - waits) * self.dice.uniform(0.8, 1.2)
        busy = (
            90.0 if number != self.victim else 90.0 * (1 - slow * (1 - 1 / self.factor))
        )  # the victim's processors are slow
        return cores, min(100.0, busy * self.dice.uniform(0.9, 1.1))


def named_after(seed: int) -> float | None:
    """Return the seconds from the first slow step until the slow node is named, or None if no node or a wrong node
    is named."""
    run = SlowNode(seed)
    for now, pulse in run.pulses():
        for found in ailments(pulse):
            if found.cause == Cause.STRAGGLER:
                return now - run.began if f"Node n{run.victim} " in found.summary and now >= run.began else None
    return None


def share(runs: int) -> float:
    """Return the share of these runs in which the slow node is named."""
    return round(sum(named_after(seed) is not None for seed in range(runs)) / runs, 3)
