"""Simulated healthy runs, which must raise no alarm: phases with and without log lines, while the nodes work.

During an evaluation and while a checkpoint is saved, the first node often works alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from shared.diagnosis.live import ailments
from shared.diagnosis.observed import Observed
from shared.kernel.storage import Growth
from shared.runs.pulse import NodePulse, Pulse

BEGAN = datetime(2026, 11, 28, 12, tzinfo=UTC)


class Healthy:
    """A simulated healthy run, second by second: phases with or without log lines, in which the nodes do some work."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.nodes, self.gpus = self.dice.choice((1, 1, 2, 4)), self.dice.random() < 0.5
        self.text, self.written, self.step = "", 0, 0
        self.lines: list[tuple[int, str]] = []
        self.work: list[tuple[int, float, float, float]] = []  # until, processors, percent of a GPU, megabytes a second
        self.alone: list[range] = []  # seconds in which the first node works alone
        second = 0
        for seconds, every, cores, gpu, moved, name in self.phases():
            for at in range(second, second + seconds):
                if every and at % every == 0:
                    self.step += 1
                    self.lines.append((at, self.line(name)))
            if name and self.dice.random() < 0.7:
                self.alone.append(range(second, second + seconds))
            second += seconds
            self.work.append((second, cores, gpu, moved))
        self.ends = second

    def phases(self) -> Iterator[tuple[int, int, float, float, float, str]]:
        """Yield phases: seconds, seconds between log lines (0: no lines), busy processors, GPU percent, megabytes a
        second, and the name of the work beside training steps."""
        dice, every = self.dice, self.dice.choice((1, 2, 5, 20, 60))
        yield dice.randint(20, 800), 0, dice.choice((0.02, 1.0)), 0.0, dice.uniform(0, 90), ""  # start, download
        yield dice.randint(0, 1_500), 0, 1.0, 0.0, 0.0, ""  # compile
        for _ in range(dice.randint(1, 4)):
            yield dice.randint(120, 900), every, dice.uniform(0.5, 6), dice.uniform(40, 100), dice.uniform(0, 50), ""
            lines = dice.choice((0, 0, 4 * every))
            yield dice.randint(0, 1_200), lines, dice.uniform(0.5, 6), dice.uniform(20, 100), 0.0, "Test"
            yield (
                dice.randint(0, 900),
                0,
                dice.uniform(0.02, 1),
                0.0,
                dice.uniform(20, 400),
                "save",
            )  # a large checkpoint
            yield dice.randint(0, 30), 0, 0.02, 0.0, 0.0, ""  # the epoch ends
        yield dice.randint(120, 600), every, 2.0, 80.0, 5.0, ""

    def line(self, name: str) -> str:
        loss = 5 / (1 + self.step / 50) * self.dice.uniform(0.8, 1.2)
        if name:
            return f"{name}: [{self.step}/9000] Time 0.2 Loss {loss:.4f}"
        wait = self.dice.uniform(0, 0.3) if self.step > 3 else 0.9  # the first batches wait
        return f"epoch 1 step {self.step} Time 1.0000 (1.0000) Data {wait:.4f} ({wait:.4f}) Loss {loss:.4f}"

    def pulses(self) -> Iterator[Pulse]:
        """Yield the pulse of each check, one a minute."""
        seen = Observed()
        for now in range(self.dice.randrange(60), self.ends, 60):
            shown = [(at, line) for at, line in self.lines if at <= now]
            data, at = "".join(f"{line}\n" for _, line in shown).encode(), BEGAN
            if shown:
                at = BEGAN + timedelta(seconds=shown[-1][0])
            if seen.wants_list:
                seen = seen.listed("logs", {0: ("log", len(data), at)} if data else {})
            else:
                seen = seen.read(Growth(data[seen.at :], len(data), at))
            yield seen.pulse(BEGAN, BEGAN + timedelta(seconds=now), tuple(self.measured(now)))

    def measured(self, now: int) -> Iterator[NodePulse]:
        """Yield samples of whole minutes. Samples of Azure Monitor come two minutes late."""
        ends = [60 * (now // 60 - ago) for ago in range(11, 1 if self.gpus else 0, -1)]
        if not any(end >= 60 for end in ends):
            return
        for number in range(self.nodes):
            cores, gpu, moved = zip(*(self.minute(end - 60, number) for end in ends if end >= 60), strict=True)
            yield NodePulse(
                f"n{number}", BEGAN + timedelta(seconds=ends[-1] - 60), cores, 8.0, gpu if self.gpus else (), moved[-1],
                self.dice.uniform(1_000, 14_900), 16_000.0, self.dice.uniform(9_000, 60_000), 100_000.0,
            )  # fmt: skip

    def minute(self, begin: int, number: int) -> tuple[float, float, float]:
        """Return the averages of one minute on a node. A waiting node's processors are idle, but its GPU spins."""
        waits = [number > 0 and any(at in alone for alone in self.alone) for at in range(begin, begin + 60, 10)]
        rows = [
            (0, 0.02, 100.0, 0.0) if each else next(row for row in self.work if at < row[0])
            for at, each in zip(range(begin, begin + 60, 10), waits, strict=True)
        ]
        return tuple(sum(row[column] for row in rows) / len(rows) for column in (1, 2, 3))  # type: ignore[return-value]


def alarms(seeds: range) -> list[str]:
    """Return the causes named in healthy runs, each with its seed and its second."""
    return [
        f"{found.cause}: seed {seed}, second {(each.now - BEGAN).total_seconds():.0f}"
        for seed in seeds
        for each in Healthy(seed).pulses()
        for found in ailments(each)
    ]
