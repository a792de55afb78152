"""Players for `bench sweeps`: the app's own sweep, random search, Optuna, and Syne Tune where it is installed.

Each player gets a task and a number of epochs. Four trials run at once, and every running trial reports one value in
turn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from benchmarks._sweep_families import AT_ONCE, Family
from shared.jobs.search import ASHA, BAYESIAN, CHOICE, RANDOM, Drawn, Parameter, Stopping, Sweep
from shared.sweeps import decide, sampling
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.trust import rungs


@dataclass
class Course:
    """The best value after each number of epochs, in ascending order."""

    points: list[tuple[int, float]] = field(default_factory=list)

    def add(self, epochs: int, best: float) -> None:
        if not self.points or best > self.points[-1][1]:
            self.points.append((epochs, best))

    def at(self, epochs: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return the best value after each of these numbers of epochs; -inf before the first value."""
        places = np.searchsorted([at for at, _ in self.points], epochs, side="right")
        return np.array([-math.inf, *(best for _, best in self.points)])[places]


class Player(Protocol):
    """Draws configurations, and receives their values."""

    def draw(self) -> dict[str, Drawn]:
        """Return the next configuration."""

    def hear(self, number: int, value: float, is_last: bool) -> bool:
        """Receive one value of trial `number` (counted in the order of the draws). Return whether the trial
        continues."""


def play(player: Player, family: Family, task: str, epochs: int, only_ends: bool) -> Course:
    """Play this many epochs and return the course. With `only_ends`, only the values of whole trainings count."""
    course, used, begun = Course(), 0, 0
    running: dict[int, Iterator[tuple[float, bool]]] = {}
    while used < epochs:
        while len(running) < AT_ONCE:
            curve = family.curve(task, player.draw())
            running[begun], begun = (
                iter([(value, epoch == len(curve)) for epoch, value in enumerate(curve, 1)]),
                begun + 1,
            )
        for number, curve_left in list(running.items()):
            value, is_last = next(curve_left)
            used += 1
            if is_last or not only_ends:
                course.add(used, value)
            if not player.hear(number, value, is_last) or is_last:
                running.pop(number, None)
        for number in getattr(player, "stopped", lambda: [])():
            running.pop(number, None)
    return course


class Ours:
    """The app's sweep, with the app's own decisions."""

    def __init__(self, sweep: Sweep, seed: int) -> None:
        self._sweep, self._name = sweep, f"seed {seed}"
        self._trials: list[Trial] = []

    def draw(self) -> dict[str, Drawn]:
        drawn = sampling.draw(self._sweep, self._name, self._trials)
        self._trials.append(Trial(len(self._trials), drawn, told=[]))
        return sampling.values(self._sweep, drawn)

    def hear(self, number: int, value: float, is_last: bool) -> bool:
        trial = self._trials[number]
        trial.told.append(value)  # type: ignore[attr-defined]
        if is_last:
            self._trials[number] = replace(trial, state=TrialState.COMPLETED)
        return True

    def stopped(self) -> list[int]:
        """Return the trials that the sweep stops after all running trials have reported a value."""
        stopping = self._sweep.stopping
        live = [trial for trial in self._trials if trial.is_live]
        if stopping is None or not any(len(t.told) in rungs(stopping, len(t.told)) for t in live):
            return []
        lost = list(decide.losers(self._sweep, self._trials))
        for number in lost:
            self._trials[number] = replace(self._trials[number], state=TrialState.STOPPED)
        return lost


class Optunas:
    """TPE with Hyperband's pruner, as Optuna's documentation recommends for parallel trials."""

    def __init__(self, sweep: Sweep, seed: int, epochs: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")  # experimental arguments
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs, reduction_factor=3)
        self._study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
        self._space = {name: _optunas(each) for name, each in sweep.space.items()}
        self._trials: list[Any] = []
        self._told: list[int] = []

    def draw(self) -> dict[str, Drawn]:
        self._trials.append(self._study.ask(self._space))
        self._told.append(0)
        return dict(self._trials[-1].params)

    def hear(self, number: int, value: float, is_last: bool) -> bool:
        import optuna

        trial = self._trials[number]
        self._told[number] += 1
        trial.report(value, self._told[number])
        if is_last:
            self._study.tell(trial, value)
        elif trial.should_prune():
            self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return False
        return True


class SyneTunes:
    """Syne Tune's asynchronous successive halving, with random configurations."""

    def __init__(self, sweep: Sweep, seed: int, epochs: int) -> None:
        from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

        space = {name: _syne_tunes(each) for name, each in sweep.space.items()}
        self._scheduler = AsynchronousSuccessiveHalving(
            space, metric="value", do_minimize=False, time_attr="epoch", max_t=epochs, random_seed=seed
        )
        self._trials: list[Any] = []
        self._told: list[int] = []

    def draw(self) -> dict[str, Drawn]:
        from syne_tune.backend.trial_status import Trial as Theirs

        configuration = self._scheduler.suggest().config
        self._trials.append(Theirs(len(self._trials), configuration, datetime.now(UTC)))
        self._told.append(0)
        self._scheduler.on_trial_add(self._trials[-1])
        return dict(configuration)

    def hear(self, number: int, value: float, is_last: bool) -> bool:  # noqa: ARG002 - the scheduler knows
        self._told[number] += 1
        told = {"value": value, "epoch": self._told[number]}
        return str(self._scheduler.on_trial_result(self._trials[number], told)) != "STOP"


def player(name: str, sweep: Sweep, seed: int, epochs: int) -> Player:
    if name == "random":
        return Ours(replace(sweep, sampling=RANDOM), seed)
    if name == "ours":
        return Ours(replace(sweep, sampling=BAYESIAN, stopping=Stopping(ASHA)), seed)
    return Optunas(sweep, seed, epochs) if name == "optuna" else SyneTunes(sweep, seed, epochs)


def names() -> list[str]:
    """Return the players that can play on this machine."""
    others = {"optuna": "optuna", "syne_tune": "syne-tune"}
    missing = [package for name, package in others.items() if not find_spec(name)]
    if missing:
        print(f"Not played, because they are not installed: {', '.join(missing)}.")
    return ["ours", "random", *(name for name in others if find_spec(name))]


def _optunas(parameter: Parameter) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.kind == CHOICE:
        return CategoricalDistribution(parameter.values)
    low, high = (float(end) for end in parameter.ends)
    if parameter.is_whole:
        return IntDistribution(int(low), int(high), log=parameter.is_log)
    return FloatDistribution(low, high, log=parameter.is_log)


def _syne_tunes(parameter: Parameter) -> Any:
    from syne_tune import config_space

    if parameter.kind == CHOICE:
        return config_space.choice(list(parameter.values))
    low, high = (float(end) for end in parameter.ends)
    if parameter.is_whole:
        return (config_space.lograndint if parameter.is_log else config_space.randint)(int(low), int(high))
    return (config_space.loguniform if parameter.is_log else config_space.uniform)(low, high)
