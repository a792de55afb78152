"""Draw the values of a sweep's next trial. The same trials give the same draw. Pure.

Bayesian sampling uses Optuna's TPE. Under asha, values at different intervals can't be compared, so the model learns
from the highest rung that enough trials have reached, as BOHB does (https://arxiv.org/abs/1807.01774). On LCBench, a
model of the first rung was worse than random draws, and so was a model that ranked trials by how far they came.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Sequence
from itertools import islice, product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from shared.jobs.search import ASHA, BAYESIAN, CHOICE, GRID, NORMAL, RANDINT, SOBOL, Drawn, Parameter, Sweep
from shared.sweeps import sobol
from shared.sweeps.decide import rungs
from shared.sweeps.model import Trial, TrialState

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FILLED = 8  # minimum number of trials from which the model learns; under asha also more than there are parameters
SEEN = 100  # of very many trials the model sees the newest
RANDOM_SHARE = 3  # every third draw is random, so that a wrong model can't persist
Draw = dict[str, Drawn]


def possible(sweep: Sweep) -> int:
    """The number of distinct trials that the sampling can draw."""
    if sweep.sampling != GRID:
        return sweep.most_trials
    return math.prod(len(parameter.values) for parameter in sweep.space.values())


def draw(sweep: Sweep, name: str, trials: Sequence[Trial]) -> Draw:
    """The next trial's values. Without a seed in the sweep, the sweep's name is the seed."""
    number = sum(trial.own for trial in trials)
    seed = zlib.crc32(f"{name if sweep.seed is None else sweep.seed} {number}".encode())
    if sweep.sampling == GRID:
        cells = product(*(parameter.values for parameter in sweep.space.values()))
        return dict(zip(sweep.space, next(islice(cells, number, None)), strict=True))
    if sweep.sampling == SOBOL:
        return _sobol(sweep, zlib.crc32(f"{name if sweep.seed is None else sweep.seed}".encode()), number)
    if sweep.sampling == BAYESIAN and number % RANDOM_SHARE:
        learned = scores(sweep, [trial for trial in trials if fits(sweep, trial)])
        if len(learned) >= FILLED:
            return _by_model(sweep, learned, trials, seed)
    return _at_random(sweep, seed)


def values(sweep: Sweep, drawn: Draw) -> Draw:
    """A trial's values: rounded, and with the quantiles of normal kinds converted to values."""
    return {name: _value(sweep.space[name], each) if name in sweep.space else each for name, each in drawn.items()}


def distributions(sweep: Sweep) -> dict[str, BaseDistribution]:
    """The search space in Optuna's form. Normal kinds are drawn as quantiles."""
    return {name: _distribution(parameter) for name, parameter in sweep.space.items()}


def scores(sweep: Sweep, trials: Sequence[Trial]) -> list[tuple[Trial, float]]:
    """The trials from which the model learns, each with its best value.

    Under asha, this is the best value at the highest rung, from the second rung on, that enough trials have reached.
    """
    if sweep.stopping is None or sweep.stopping.kind != ASHA:
        ended = [trial for trial in trials if trial.told and trial.state is not TrialState.RUNNING]
        return [(trial, best) for trial in ended[-SEEN:] if (best := trial.best(sweep.maximize)) is not None]
    reached = [list(rungs(sweep.stopping, len(trial.told))) for trial in trials]
    for rung in reversed(max(reached, key=len, default=[])[1:]):
        came = [trial for trial, its in zip(trials, reached, strict=True) if rung in its]
        if len(came) >= max(FILLED, len(sweep.space) + 1):
            best_values = ((trial, trial.best(sweep.maximize, rung)) for trial in came[-SEEN:])
            return [(trial, best) for trial, best in best_values if best is not None]
    return []


def fits(sweep: Sweep, trial: Trial) -> bool:
    """Whether the drawn values are in the search space. Trials that were added from elsewhere may be outside."""
    return trial.own or all(
        name in trial.drawn and _contains(each, trial.drawn[name]) for name, each in distributions(sweep).items()
    )


def _contains(distribution: BaseDistribution, value: Drawn) -> bool:
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except ValueError:
        return False


def params_of(sweep: Sweep, trial: Trial) -> Draw:
    """The drawn values of the search space alone."""
    return {name: trial.drawn[name] for name in sweep.space}


def _by_model(sweep: Sweep, learned: list[tuple[Trial, float]], trials: Sequence[Trial], seed: int) -> Draw:
    import optuna

    class Given(optuna.storages.InMemoryStorage):
        """An Optuna storage that starts with these trials, without copying them."""

        def get_all_trials(self, study_id: int, deepcopy: bool = True, states: Any = None) -> list[Any]:
            there = [trial for trial in given if states is None or trial.state in states]
            return [*there, *super().get_all_trials(study_id, deepcopy, states)]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = distributions(sweep)
    its: dict[str, Any] = {"distributions": space}
    given = [optuna.create_trial(params=params_of(sweep, trial), value=value, **its) for trial, value in learned]
    scored = {trial.number for trial, _ in learned}
    running = optuna.trial.TrialState.RUNNING
    for trial in trials:
        if trial.is_live and trial.number not in scored:
            given.append(optuna.create_trial(params=params_of(sweep, trial), state=running, **its))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `multivariate` is called experimental; the version is pinned
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=0)
    direction = optuna.study.StudyDirection.MAXIMIZE if sweep.maximize else optuna.study.StudyDirection.MINIMIZE
    study = optuna.create_study(storage=Given(), direction=direction, sampler=sampler)
    return dict(study.ask(space).params)


def _at_random(sweep: Sweep, seed: int) -> Draw:
    import numpy as np

    points = np.random.default_rng(seed).random(len(sweep.space))
    return {name: _at(each, float(at)) for (name, each), at in zip(sweep.space.items(), points, strict=True)}


def _sobol(sweep: Sweep, seed: int, number: int) -> Draw:
    point = sobol.point(len(sweep.space), seed, number)
    return {name: _at(parameter, at) for (name, parameter), at in zip(sweep.space.items(), point, strict=True)}


def _at(parameter: Parameter, quantile: float) -> Drawn:
    """The value at this quantile of a parameter's range, from 0 up to 1."""
    if parameter.kind == CHOICE:
        return parameter.values[int(quantile * len(parameter.values))]
    if parameter.kind == RANDINT:
        return int(quantile * parameter.first)
    if parameter.kind in NORMAL:
        return quantile
    at = parameter.first + quantile * (parameter.second - parameter.first)
    return _inside(parameter, math.exp(at) if parameter.is_log else at)


def _inside(parameter: Parameter, at: float) -> Drawn:
    """The value in the form of the parameter's distribution."""
    if parameter.is_log and not _is_int(parameter):
        return at
    return parameter.rounded(at) if parameter.step else at


def _is_int(parameter: Parameter) -> bool:
    """Whether Optuna has an integer distribution for the parameter: on a log scale only for step 1, from 1 on."""
    low, *_ = parameter.ends
    return parameter.is_whole and (not parameter.is_log or (parameter.step == 1 and float(low) >= 1))


def _value(parameter: Parameter, drawn: Drawn) -> Drawn:
    if parameter.kind in (CHOICE, RANDINT):
        return drawn
    number = float(drawn)
    if parameter.kind in NORMAL:
        quantile = min(max(number, 1e-9), 1 - 1e-9)
        number = NormalDist(parameter.first, parameter.second).inv_cdf(quantile)
        number = math.exp(number) if parameter.is_log else number
    return parameter.rounded(number)


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.kind == CHOICE:
        return CategoricalDistribution(parameter.values)
    if parameter.kind in NORMAL:
        return FloatDistribution(0.0, 1.0)
    if parameter.kind == RANDINT:
        return IntDistribution(0, int(parameter.first) - 1)
    low, high = parameter.ends
    if _is_int(parameter):
        return IntDistribution(int(low), int(high), log=parameter.is_log, step=int(parameter.step))
    if parameter.is_log:
        return FloatDistribution(math.exp(parameter.first), math.exp(parameter.second), log=True)
    return FloatDistribution(float(low), float(high), step=parameter.step or None)
