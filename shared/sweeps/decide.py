"""Decide which trials of a sweep have lost, which trial is the best, and how many more may start. Pure.

A trial's interval is the number of metric values that it has reported. The rules of bandit, median_stopping and
truncation_selection are Azure ML's:
https://learn.microsoft.com/azure/machine-learning/how-to-tune-hyperparameters#early-termination

asha is asynchronous successive halving (https://arxiv.org/abs/1810.05934) that believes early values only as far as
trust.py says. A trial is compared once it has reached a rung, and until it is halfway to the next rung of eta 3: later
it has paid for most of what its next values cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from shared.jobs.search import ASHA, BANDIT, MEDIAN, Stopping, Sweep
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.trust import GOOD_OF, is_witness, part_to_stop, percentile, rungs, trust, whole_length

COMPARED = 2  # a trial is compared at a rung until it has reported this many times as many values


def losers(sweep: Sweep, trials: Sequence[Trial]) -> dict[int, str]:
    """The running trials to stop, each with the reason."""
    if sweep.stopping is None:
        return {}
    if sweep.stopping.kind == ASHA:
        return _asha(sweep, sweep.stopping, trials)
    live = [trial for trial in trials if trial.is_live and trial.told]
    reasons = {trial.number: _why_lost(sweep, sweep.stopping, trial, trials) for trial in live}
    return {number: why for number, why in reasons.items() if why}


def best_trial(sweep: Sweep, trials: Sequence[Trial]) -> Trial | None:
    """The completed trial with the best value, among the sweep's own trials."""
    scored = [trial for trial in trials if trial.own and trial.state is TrialState.COMPLETED and trial.told]
    return max(scored, key=lambda trial: (_up(sweep, trial), -trial.number), default=None)


def to_start(sweep: Sweep, trials: Sequence[Trial], possible: int) -> int:
    """How many trials to start now. `possible` is the number of distinct trials."""
    live = sum(trial.is_live for trial in trials)
    return max(0, min(sweep.at_once - live, min(sweep.most_trials, possible) - sum(trial.own for trial in trials)))


def _up(sweep: Sweep, trial: Trial, interval: int | None = None) -> float:
    """The trial's best value up to an interval, signed so that a higher value is better."""
    best = trial.best(sweep.maximize, interval)
    assert best is not None
    return best if sweep.maximize else -best


def _why_lost(sweep: Sweep, stopping: Stopping, trial: Trial, trials: Sequence[Trial]) -> str:
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


def _asha(sweep: Sweep, stopping: Stopping, trials: Sequence[Trial]) -> dict[int, str]:
    """The running trials with a loss under asha, each with the reason."""
    length, trusted = whole_length(trials), trust(sweep, trials)
    standing: dict[int, list[float]] = {}
    ends: dict[int, str] = {}
    for trial in trials:
        rung = max(rungs(stopping, len(trial.told)), default=0)
        compared = rung <= len(trial.told) < COMPARED * rung and not 0 < length <= len(trial.told)
        if not trial.is_live or not compared or is_witness(stopping, trusted, trial):
            continue
        if rung not in standing:
            standing[rung] = sorted(_up(sweep, other, rung) for other in trials if len(other.told) >= rung)
        place, lost = percentile(standing[rung], _up(sweep, trial, rung)), 1 - 1 / stopping.eta
        if length:
            good_of = min(GOOD_OF, len(trials))
            lost = part_to_stop(round(20 * trusted[rung]), round(100 * rung / length), good_of)
        if place < lost:
            ends[trial.number] = (
                f"at interval {rung} it is better than {100 * place:.0f} % of the other trials; "
                f"the last {100 * lost:.0f} % are stopped"
            )
    return ends


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
