"""The definition of a sweep: search space, sampling, objective, early stopping, and limits.

The kinds of parameters, their names and their rules are those of Azure ML's sweep jobs; `asha` and the budget are ours.
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
    """One dimension of the search space.

    `first` and `second` are min_value and max_value (logarithms, if the kind says so), or mu and sigma. A randint has
    its upper end in `first`. Drawn values are rounded to multiples of `step`, if `step` is not 0.
    """

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
        """Whether the parameter has only whole numbers."""
        return self.kind == RANDINT or (self.step >= 1 and float(self.step).is_integer())

    @property
    def ends(self) -> tuple[Drawn, ...]:
        """Values to validate: all values of a choice, else the lowest and highest value; none for an unbounded kind."""
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
    """The early stopping policy. A trial's interval is the number of reported metric values, from 1.

    asha: at `delay` intervals (default 2), and at each further factor of `eta`, a trial continues only if it is among
    the best 1/`eta` of the trials that have reached this interval. The other policies are Azure ML's.
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
    timeout_seconds: int = 0  # of the whole sweep
    budget: float = 0.0  # dollars; 0: no budget
    stopping: Stopping | None = None
