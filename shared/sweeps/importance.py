"""The importance of each parameter of a sweep, by PED-ANOVA (https://arxiv.org/abs/2304.10255). Pure.

A parameter is important where the best tenth of the trials has other values than all trials. On a grid over the
parameter's range, p is the density of the best trials and q that of all trials. The importance is the Pearson
divergence, sum of q (p / q - 1)^2, as a share of the sum over all parameters. The densities are those of Optuna's
PedAnovaImportanceEvaluator: kernels of a width by Scott's rule, and one wide component as prior.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist

from shared.jobs.search import CHOICE, Parameter, Sweep
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.sampling import fits, is_int, place_of

LEAST = 8  # trials; with fewer, no importance is reported
BEST_PART = 0.1
STEPS = 50  # of the grid of a range
LEAST_WIDTH = 0.5 / 1.64  # 90 % of a kernel of this width lie in one step of the grid


def importance(sweep: Sweep, trials: Sequence[Trial]) -> dict[str, float]:
    """The share of each parameter, the largest first; {} with too few trials."""
    ended = (trial for trial in trials if trial.state is not TrialState.RUNNING and fits(sweep, trial))
    best = [(trial, trial.best(sweep.maximize)) for trial in ended]
    measured = [(trial, value) for trial, value in best if value is not None]
    if len(measured) < LEAST or len({value for _, value in measured}) == 1:
        return {}
    ascending = sorted((value for _, value in measured), reverse=sweep.maximize)
    least = ascending[math.ceil(BEST_PART * len(ascending)) - 1]
    good = [trial for trial, value in measured if (value >= least if sweep.maximize else value <= least)]
    everyone = [trial for trial, _ in measured]
    parts = {name: _divergence(name, parameter, good, everyone) for name, parameter in sweep.space.items()}
    whole = sum(parts.values())
    shares = {name: round(part / whole if whole else 1 / len(parts), 4) for name, part in parts.items()}
    return dict(sorted(shares.items(), key=lambda each: -each[1]))


def _divergence(name: str, parameter: Parameter, good: Sequence[Trial], everyone: Sequence[Trial]) -> float:
    steps = _steps(parameter)
    if steps < 2:
        return 0.0
    of_good, of_all = (
        _density(parameter, Counter(_cell(parameter, trial, name, steps) for trial in some), steps)
        for some in (good, everyone)
    )
    return sum(q * (p / q - 1) ** 2 for p, q in zip(of_good, of_all, strict=True))


def _steps(parameter: Parameter) -> int:
    """The number of cells of the parameter's grid."""
    if parameter.kind == CHOICE:
        return len(parameter.values)
    if not parameter.ends or not (is_int(parameter) or (parameter.step and not parameter.is_log)):
        return STEPS
    low, high = map(float, parameter.ends)
    if parameter.is_log:
        return min(math.ceil(math.log2(high - low + 1)) + 1, STEPS)
    return min(round((high - low) / (parameter.step or 1)) + 1, STEPS)


def _cell(parameter: Parameter, trial: Trial, name: str, steps: int) -> int:
    if parameter.kind == CHOICE:
        return parameter.values.index(trial.drawn[name])
    return min(max(math.ceil(place_of(parameter, trial.drawn[name]) * (steps - 1) - 0.5), 0), steps - 1)


def _density(parameter: Parameter, counts: Counter[int], steps: int) -> list[float]:
    """The probability of each cell. Each filled cell has a kernel, with the number of its trials as weight."""
    cells, total = sorted(counts), counts.total()
    if parameter.kind == CHOICE:
        kernel = 1 / (len(cells) + 1)  # the prior's weight in each kernel, over all cells
        base = (total * kernel / (1 + steps * kernel) + 1 / steps) / (total + 1)
        return [base + counts[cell] / (1 + steps * kernel) / (total + 1) for cell in range(steps)]
    width = _width([(cell, counts[cell]) for cell in cells], total)
    kernels = [(float(cell), width, counts[cell]) for cell in cells] + [((steps - 1) / 2, float(steps), 1)]
    density = [0.0] * steps
    for center, spread, weight in kernels:
        edges = [NormalDist(center, spread).cdf(cell - 0.5) for cell in range(steps + 1)]
        for cell, (low, high) in enumerate(pairwise(edges)):
            density[cell] += weight * (high - low) / (edges[-1] - edges[0]) / (total + 1)
    return [each + 1e-12 for each in density]


def _width(cells: Sequence[tuple[int, int]], total: int) -> float:
    """The width of the kernels, by Scott's rule, from the cells with their numbers of trials."""
    mean = sum(cell * count for cell, count in cells) / total
    deviation = math.sqrt(sum((cell - mean) ** 2 * count for cell, count in cells) / max(1, total - 1))
    reached = list(accumulate(count for _, count in cells))
    first = next(place for place, count in enumerate(reached) if count >= total // 4)
    third = next((place for place, count in enumerate(reached) if count > total * 3 // 4), len(cells) - 1)
    spread = cells[third][0] - cells[first][0]
    return max(1.059 * min(spread / 1.34, deviation) * math.pow(total, -0.2), LEAST_WIDTH)
