"""Decide which trials of a sweep have lost, which trial is the best, and how many more may start. Pure.

A trial's interval is the number of metric values that it has reported. The rules of bandit, median_stopping and
truncation_selection are Azure ML's:
https://learn.microsoft.com/azure/machine-learning/how-to-tune-hyperparameters#early-termination
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from shared.jobs.search import ASHA, BANDIT, MEDIAN, Stopping, Sweep
from shared.sweeps.model import Trial, TrialState

FIRST_RUNG = 2  # asha's default: the first value often comes from an untrained model
Standing = dict[int, list[float]]  # by rung, the values of all trials that reached it, ascending; higher is better


def rungs(stopping: Stopping, reached: int) -> Iterator[int]:
    """The intervals at which asha compares trials, up to this interval."""
    rung = stopping.delay or FIRST_RUNG
    while rung <= reached:
        yield rung
        rung *= stopping.eta


def standings(sweep: Sweep, trials: Sequence[Trial]) -> Standing:
    """The trials' values at each rung of asha."""
    standing: Standing = defaultdict(list)
    if sweep.stopping is None or sweep.stopping.kind != ASHA:
        return standing
    for trial in trials:
        for rung in rungs(sweep.stopping, len(trial.told)):
            standing[rung].append(_up(sweep, trial, rung))
    for values in standing.values():
        values.sort()
    return standing


def losers(sweep: Sweep, trials: Sequence[Trial]) -> dict[int, str]:
    """The running trials to stop, each with the reason."""
    if sweep.stopping is None:
        return {}
    standing, ends = standings(sweep, trials), {}
    for trial in trials:
        if trial.is_live and trial.told and (why := _why_lost(sweep, sweep.stopping, trial, trials, standing)):
            ends[trial.number] = why
    return ends


def best_trial(sweep: Sweep, trials: Sequence[Trial]) -> Trial | None:
    """The completed trial with the best value, among the sweep's own trials."""
    scored = [trial for trial in trials if trial.own and trial.state is TrialState.COMPLETED and trial.told]
    return max(scored, key=lambda trial: (_up(sweep, trial), -trial.number), default=None)


def to_start(sweep: Sweep, trials: Sequence[Trial], possible: int) -> int:
    """How many trials to start now. `possible` is the number of distinct trials."""
    live = sum(trial.is_live for trial in trials)
    return max(0, min(sweep.at_once - live, min(sweep.most_trials, possible) - sum(trial.own for trial in trials)))


def _up(sweep: Sweep, trial: Trial, interval: int | None = None) -> float:
    """The trial's best value up to an interval, with its sign chosen so that higher is better."""
    best = trial.best(sweep.maximize, interval)
    assert best is not None
    return best if sweep.maximize else -best


def _why_lost(sweep: Sweep, stopping: Stopping, trial: Trial, trials: Sequence[Trial], standing: Standing) -> str:
    if stopping.kind == ASHA:
        return _asha(sweep, stopping, trial, standing)
    at = len(trial.told)
    if at < max(stopping.delay, 1) or at < stopping.interval:
        return ""
    at -= at % stopping.interval  # the last interval at which the policy applies
    others = [other for other in trials if len(other.told) >= at]
    mine = _up(sweep, trial, at)
    if stopping.kind == BANDIT:
        return _bandit(sweep, stopping, mine, max(_up(sweep, other, at) for other in others))
    if stopping.kind == MEDIAN:
        middle = median(fmean(other.told[:at]) for other in others)
        if mine >= (middle if sweep.maximize else -middle):
            return ""
        return f"at interval {at} its best is {abs(mine):g}, the median of the running averages {middle:g}"
    values = sorted(_up(sweep, other, at) for other in others)
    lost = len(values) * stopping.percentage // 100
    if not lost or mine > values[lost - 1]:
        return ""
    return f"at interval {at} it is among the last {stopping.percentage} % of {len(values)} trials"


def _asha(sweep: Sweep, stopping: Stopping, trial: Trial, standing: Standing) -> str:
    """Why the trial lost under asha; '' if it continues. The trial is compared at its highest rung so far."""
    rung = max(rungs(stopping, len(trial.told)), default=0)
    if not rung:
        return ""
    values = standing[rung]
    go_on = max(1, len(values) // stopping.eta)
    better = len(values) - bisect_left(values, _up(sweep, trial, rung))
    if values[-go_on] <= _up(sweep, trial, rung):
        return ""
    return f"at interval {rung} it is number {better} of {len(values)} trials, and {go_on} go on"


def _bandit(sweep: Sweep, stopping: Stopping, mine: float, best: float) -> str:
    """Why the trial lost under bandit; '' if its best value is within the slack of the best trial."""
    mine, best = (mine, best) if sweep.maximize else (-mine, -best)
    if stopping.slack_amount:
        least = best - stopping.slack_amount if sweep.maximize else best + stopping.slack_amount
    else:
        factor = 1 + stopping.slack_factor
        least = best / factor if sweep.maximize else best * factor
    worse = mine < least if sweep.maximize else mine > least
    return f"its best is {mine:g}, the best trial's {best:g}, and {least:g} is allowed" if worse else ""
