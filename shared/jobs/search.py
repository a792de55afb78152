"""What a sweep asks for: a search space, how it is drawn from, what is best, when trials are stopped, and its limits.

The kinds of parameters, their words and their rules are those of Azure ML's sweep jobs; `asha` and a budget are ours.
https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

Drawn = str | int | float  # bool among them
RANDOM, SOBOL, GRID, BAYESIAN = "random", "sobol", "grid", "bayesian"
SAMPLINGS = (BAYESIAN, RANDOM, SOBOL, GRID)
ASHA, BANDIT, MEDIAN, TRUNCATION = "asha", "bandit", "median_stopping", "truncation_selection"
POLICIES = (ASHA, BANDIT, MEDIAN, TRUNCATION)
CHOICE, RANDINT = "choice", "randint"
UNIFORM = ("uniform", "quniform", "loguniform", "qloguniform")
NORMAL = ("normal", "qnormal", "lognormal", "qlognormal")
KINDS = (CHOICE, RANDINT, *UNIFORM, *NORMAL)
MOST_TRIALS = 1000


@dataclass(frozen=True)
class Parameter:
    """One dimension. `first` and `second` are min_value and max_value (of logarithms, if the kind says so), or mu and
    sigma; randint has its upper end in `first`. What is drawn is rounded to multiples of `step`, if there is one."""

    kind: str
    values: tuple[Drawn, ...] = ()
    first: float = 0.0
    second: float = 0.0
    step: float = 0.0

    @property
    def is_log(self) -> bool:
        return "log" in self.kind

    @property
    def is_whole(self) -> bool:
        """Whether all that it gives are whole numbers."""
        return self.kind == RANDINT or (self.step >= 1 and float(self.step).is_integer())

    @property
    def ends(self) -> tuple[Drawn, ...]:
        """Values to check: all of a choice, else the lowest and the highest; none of an endless kind."""
        if self.kind == CHOICE:
            return self.values
        if self.kind == RANDINT:
            return (0, int(self.first) - 1)
        if self.kind in NORMAL:
            return ()
        ends = (math.exp(self.first), math.exp(self.second)) if self.is_log else (self.first, self.second)
        return tuple(self.rounded(end) for end in ends)

    def rounded(self, number: float) -> int | float:
        number = round(number / self.step) * self.step if self.step else number
        return int(number) if self.is_whole else float(f"{number:.12g}")


@dataclass(frozen=True)
class Stopping:
    """When a trial is ended early. Its interval is how often it has told the metric, from 1.

    asha: at `delay` intervals (2 where nobody says), and at each `eta` times more, a trial goes on only among the best
    1/`eta` of those that came so far. The others are Azure ML's.
    """

    kind: str
    interval: int = 1
    delay: int = 0
    eta: int = 3
    slack_factor: float = 0.0
    slack_amount: float = 0.0
    percentage: int = 0


@dataclass(frozen=True)
class Sweep:
    space: Mapping[str, Parameter] = field(default_factory=dict)
    metric: str = ""
    maximize: bool = True
    sampling: str = BAYESIAN
    seed: int | None = None
    most_trials: int = 20
    at_once: int = 4
    timeout_seconds: int = 0  # of the whole
    budget: float = 0.0  # dollars; 0 is none
    stopping: Stopping | None = None
