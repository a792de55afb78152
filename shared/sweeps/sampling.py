"""Draw the values of a sweep's next trial. Equal trials give equal draws. Pure.

Bayesian sampling learns with tpe.py. Under asha, values at different intervals can't be compared, so the model learns
from the completed trials or, while these are few, from the highest rung that enough trials have reached and that can be
trusted (trust.py).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from itertools import islice, product
from statistics import NormalDist

from shared.jobs.search import ASHA, BAYESIAN, CHOICE, GRID, NORMAL, RANDINT, SOBOL, Drawn, Parameter, Sweep
from shared.sweeps import sobol, tpe
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.trust import trust

FILLED = 8  # minimum number of trials from which the model learns; under asha also more than there are parameters
SEEN = 100  # of very many trials the model sees the newest
RANDOM_SHARE = 3  # every third draw is random, so that a wrong model can't persist
LEARNED = 0.5  # least trust in a rung from which the model learns
Draw = dict[str, Drawn]


def possible(sweep: Sweep) -> int:
    """The number of distinct trials within the reach of the sampling."""
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


def scores(sweep: Sweep, trials: Sequence[Trial]) -> list[tuple[Trial, float]]:
    """The trials for learning, each with the best value."""
    ended = [trial for trial in trials if trial.told and trial.state is not TrialState.RUNNING]
    if sweep.stopping is None or sweep.stopping.kind != ASHA:
        return _best_values(sweep, ended)
    enough = max(FILLED, len(sweep.space) + 1)
    completed = [trial for trial in ended if trial.state is TrialState.COMPLETED]
    trusted = trust(sweep, trials) if len(completed) < enough else {}
    for rung in reversed(trusted):
        came = [trial for trial in trials if len(trial.told) >= rung]
        if len(came) >= enough and trusted[rung] >= LEARNED:
            return _best_values(sweep, came, rung)
    return _best_values(sweep, completed)


def _best_values(sweep: Sweep, trials: Sequence[Trial], interval: int | None = None) -> list[tuple[Trial, float]]:
    found = ((trial, trial.best(sweep.maximize, interval)) for trial in trials[-SEEN:])
    return [(trial, best) for trial, best in found if best is not None]


def fits(sweep: Sweep, trial: Trial) -> bool:
    """Whether the drawn values are in the search space. Trials that were added from elsewhere may be outside."""
    return trial.own or all(
        name in trial.drawn and _contains(parameter, trial.drawn[name]) for name, parameter in sweep.space.items()
    )


def _contains(parameter: Parameter, value: Drawn) -> bool:
    if parameter.kind == CHOICE:
        return value in parameter.values
    if isinstance(value, str):
        return False
    low, high = _ends(parameter)
    near = 1e-9 * max(abs(low), abs(high))  # the ends of a range on a log scale are rounded
    return low - near <= value <= high + near


def point_of(sweep: Sweep, trial: Trial) -> tpe.Point:
    """The trial's place in the unit cube."""
    return [place_of(parameter, trial.drawn[name]) for name, parameter in sweep.space.items()]


def choices(sweep: Sweep) -> list[int]:
    """For each parameter the number of a choice's values; 0 for numbers."""
    return [len(parameter.values) for parameter in sweep.space.values()]


def place_of(parameter: Parameter, value: Drawn) -> float:
    """The share of the parameter's range below a drawn value, on the parameter's scale."""
    if parameter.kind == CHOICE:
        return tpe.middle_of(parameter.values.index(value), len(parameter.values))
    low, high = _ends(parameter)
    number = float(value)
    if parameter.is_log and parameter.kind not in NORMAL:
        low, high, number = parameter.first, parameter.second, math.log(number)
    return min(max((number - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def _ends(parameter: Parameter) -> tuple[float, float]:
    """The ends of a range in the form of drawn values: quantiles for normal kinds."""
    if parameter.kind in NORMAL:
        return 0.0, 1.0
    low, high = parameter.ends
    return float(low), float(high)


def _by_model(sweep: Sweep, learned: list[tuple[Trial, float]], trials: Sequence[Trial], seed: int) -> Draw:
    scored = {trial.number for trial, _ in learned}
    running = [point_of(sweep, trial) for trial in trials if trial.is_live and trial.number not in scored]
    signed = [(point_of(sweep, trial), value if sweep.maximize else -value) for trial, value in learned]
    return _at_point(sweep, tpe.propose(signed, running, choices(sweep), tpe.Dice(seed)))


def _at_random(sweep: Sweep, seed: int) -> Draw:
    dice = tpe.Dice(seed)
    return _at_point(sweep, [dice.random() for _ in sweep.space])


def _sobol(sweep: Sweep, seed: int, number: int) -> Draw:
    return _at_point(sweep, sobol.point(len(sweep.space), seed, number))


def _at_point(sweep: Sweep, point: tpe.Point) -> Draw:
    """The values at a point of the unit cube."""
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
    if parameter.is_log and not is_int(parameter):
        return at
    return parameter.rounded(at) if parameter.step else at


def is_int(parameter: Parameter) -> bool:
    """Whether drawn values are whole numbers: on a log scale only for step 1, from 1 on, as Optuna's are."""
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
