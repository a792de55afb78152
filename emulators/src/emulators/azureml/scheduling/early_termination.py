"""The early termination of a sweep's trials, by the rules of Azure ML's three policies. No I/O.

A trial's interval is the number of times that it has logged the primary metric.

https://learn.microsoft.com/azure/machine-learning/how-to-tune-hyperparameters#early-termination
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from emulators.azureml.bodies.sweep_body import Policy

Told = Mapping[int, Sequence[float]]  # a trial's number -> its values of the metric, in order


def to_end(policy: Policy, maximize: bool, told: Told, running: set[int], looked: Mapping[int, int]) -> dict[int, str]:
    """Return the running trials to stop now, each with the reason. `looked` has the last evaluated interval of each
    trial."""
    ends = {}
    for trial in sorted(running):
        for interval in _due(policy, looked.get(trial, 0), len(told.get(trial, ()))):
            if why := _reason(policy, maximize, told, trial, interval):
                ends[trial] = f"by the policy {policy.kind} at interval {interval}: {why}"
                break
    return ends


def _due(policy: Policy, looked: int, reached: int) -> list[int]:
    """Return the intervals at which a trial is evaluated now."""
    first = max(looked + 1, policy.delay, 1)
    return [each for each in range(first, reached + 1) if each % policy.interval == 0]


def _reason(policy: Policy, maximize: bool, told: Told, trial: int, interval: int) -> str | None:
    best = max if maximize else min
    others = {number: values for number, values in told.items() if len(values) >= interval}
    mine = best(told[trial][:interval])
    if policy.kind == "bandit":
        return _bandit(policy, maximize, mine, best(best(values[:interval]) for values in others.values()))
    if policy.kind == "medianstopping":
        middle = median(fmean(values[:interval]) for values in others.values())
        worse = mine < middle if maximize else mine > middle
        return f"its best is {mine:g}, and the median of the running averages is {middle:g}" if worse else None
    ranked = sorted(others, key=lambda number: others[number][interval - 1], reverse=maximize)
    lost = ranked[len(ranked) - len(ranked) * policy.percentage // 100 :]
    return f"it is among the last {policy.percentage} % of {len(ranked)} trials" if trial in lost else None


def _bandit(policy: Policy, maximize: bool, mine: float, best: float) -> str | None:
    """A trial may continue if its best value is within the slack of the best trial's best value."""
    if policy.slack_amount:
        least = best - policy.slack_amount if maximize else best + policy.slack_amount
    else:
        least = best / (1 + policy.slack_factor) if maximize else best * (1 + policy.slack_factor)
    worse = mine < least if maximize else mine > least
    return f"its best is {mine:g}, the best trial's is {best:g}, and {least:g} is allowed" if worse else None
