"""How far early values of a sweep's trials predict their final values, as asha's trials have shown so far. Pure.

At a rung, trust is an estimate of Spearman's rank correlation between the trials' values there and their best values at
the end. Two estimates are combined. The first is a product over the steps from this rung to the end: each step's
correlation is that of the trials that took the step. The second is the correlation over completed trials alone, which
may be few. With n trials, both estimates are shrunk as if PRIOR_TRIALS further trials agreed with what was believed
before: PRIOR for a step, and the first estimate for the second one. Half the standard error, 1 / sqrt(n), is
subtracted, so that early values are believed only as far as trials have shown.

Trials that only seemed good bias each correlation, so some trials run to the end whatever they tell: `is_witness`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import NormalDist, StatisticsError, correlation

from shared.jobs.search import ASHA, Stopping, Sweep
from shared.sweeps.model import Trial, TrialState

FIRST_RUNG = 2  # asha's default: the first value often comes from an untrained model
PRIOR = 0.9  # correlation that is assumed between neighbouring rungs before any trial shows it
PRIOR_TRIALS = 4
TRUSTED = 0.6  # from this trust on, few witnesses are needed
WITNESSES, MORE_WITNESSES = 25, 5  # every so manieth trial is a witness: of a sweep with trust, and of another one
MOST_STOPPED = 0.8  # of the trials at a rung
GOOD_OF = 20  # a good trial is at least the best of this many
_NORMAL = NormalDist()
_GRID = [_NORMAL.inv_cdf((place + 0.5) / 100) for place in range(100)]


def rungs(stopping: Stopping, reached: int) -> Iterator[int]:
    """The intervals at which asha compares trials, up to this interval."""
    rung = stopping.delay or FIRST_RUNG
    while rung <= reached:
        yield rung
        rung *= stopping.eta


def whole_length(trials: Sequence[Trial]) -> int:
    """The number of values of a whole training; 0 before the first completed trial of the sweep."""
    return max((len(trial.told) for trial in trials if _is_complete(trial)), default=0)


def trust(sweep: Sweep, trials: Sequence[Trial]) -> dict[int, float]:
    """The trust in the values at each rung, from -1 to 1; empty before a trial is completed."""
    length = whole_length(trials)
    if sweep.stopping is None or not length:
        return {}
    ended = [trial for trial in trials if _is_complete(trial)]
    found: dict[int, float] = {}
    chain, took = 1.0, ended
    after: int | None = None
    for rung in reversed([*rungs(sweep.stopping, length - 1)]):
        chain *= _shrunk(sweep, took, rung, after, PRIOR)
        seen = [trial for trial in ended if len(trial.told) >= rung]
        believed = _shrunk(sweep, seen, rung, None, chain) if len(seen) > 1 else chain
        found[rung] = believed - 0.5 / math.sqrt(len(seen) + PRIOR_TRIALS)
        after, took = rung, [trial for trial in trials if len(trial.told) >= rung]
    return dict(sorted(found.items()))


def in_words(sweep: Sweep, trials: Sequence[Trial]) -> str:
    """How well early values predicted final values in this sweep; '' before a trial is completed, or without asha."""
    if sweep.stopping is None or sweep.stopping.kind != ASHA or not (trusted := trust(sweep, trials)):
        return ""
    completed = sum(map(_is_complete, trials))
    rows = ", ".join(f"{found:.1f} after {rung} values" for rung, found in trusted.items())
    return f"Trust in early values, from -1 to 1: {rows}; by {completed} completed trial{'s' * (completed != 1)}."


def is_witness(stopping: Stopping, trusted: dict[int, float], trial: Trial) -> bool:
    """Whether a trial runs to the end whatever values it reports: the first trial, and further trials while trust
    is low.
    """
    second = (stopping.delay or FIRST_RUNG) * stopping.eta
    known = [trusted[rung] for rung in trusted if rung <= second]
    every = WITNESSES if not known or known[-1] >= TRUSTED else MORE_WITNESSES
    return trial.number % every == 0


@cache
def part_to_stop(correlation_20ths: int, share_percent: int, good_of: int) -> float:
    """The part of the trials to stop at a rung, to find most good trials for the spent epochs.

    Final values are taken as normal, with this correlation to the values at the rung, which lies at this share of a
    whole training. A good trial is the best of `good_of`. Stopping the part c costs the share for each trial and the
    rest of a training for 1 - c of the trials. The result is the c with the most good trials for this cost.
    """
    rho, share = correlation_20ths / 20, share_percent / 100
    if rho <= 0:
        return 0.0
    good = _NORMAL.inv_cdf(1 - 1 / (good_of + 1))
    spread = math.sqrt(1 - min(rho, 0.999) ** 2)
    chances = [1 - _NORMAL.cdf((good - rho * at) / spread) for at in _GRID]
    most, part, left = 0.0, 0.0, sum(chances)
    for place, chance in enumerate(chances):
        rate = left / (share + (1 - place / 100) * (1 - share))
        if rate > most * 1.02:  # a gain below 2 % stops no more trials
            most, part = rate, place / 100
        left -= chance
    return min(part, MOST_STOPPED)


def percentile(ascending: Sequence[float], value: float) -> float:
    """The share of the other values below this value, in `ascending` with this value included. Ties count half."""
    between = bisect_left(ascending, value) + bisect_right(ascending, value) - 1
    return between / 2 / (len(ascending) - 1) if len(ascending) > 1 else 1.0


def rank_correlation(ones: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 for fewer than two pairs, or for a side of equal values."""
    try:
        return correlation(_ranks(ones), _ranks(others))
    except StatisticsError:
        return 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """Twice the rank of each value, from 0; equal values share the mean of their ranks."""
    ascending = sorted(values)
    return [bisect_left(ascending, value) + bisect_right(ascending, value) - 1 for value in values]


def _is_complete(trial: Trial) -> bool:
    return trial.own and trial.state is TrialState.COMPLETED and bool(trial.told)


def _shrunk(sweep: Sweep, trials: Sequence[Trial], rung: int, after: int | None, prior: float) -> float:
    """The correlation of the best values at two intervals, shrunk to the prior. `after` is None for the end."""
    ones = [trial.best(sweep.maximize, rung) or 0.0 for trial in trials]
    others = [trial.best(sweep.maximize, after) or 0.0 for trial in trials]
    return (len(trials) * rank_correlation(ones, others) + PRIOR_TRIALS * prior) / (len(trials) + PRIOR_TRIALS)
