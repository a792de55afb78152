"""One job on one node that may come from any of several pools, as from low-priority clusters in several regions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks._spot import LOST, Outcome, Policy, Window, age_at_start, bound, play, price
from shared.deadlines.decide import choose
from shared.deadlines.plan import HOUR, Hold, Plan, Standing, Terms
from shared.deadlines.pool import Pool


def together(windows: Sequence[Window]) -> Window:
    """The pool that has a node whenever one of these has."""
    return Window("any", 0, [any(states) for states in zip(*(each.steps for each in windows), strict=True)], ())


def play_regions(policy: Policy, windows: Sequence[Window], terms: Terms, left: float, work: float) -> Outcome:
    """As `play`, with a change where its own pool takes the node; the next is of the one that has had some longest."""
    holds, starting, dollars, here = Hold.NONE, 0.0, 0.0, 0
    ages = [age_at_start(window) for window in windows]
    for number in range(len(windows[0].steps)):
        if left <= 0:
            break
        there = [window.steps[number] for window in windows]
        same = [not number or window.steps[number] is window.steps[number - 1] for window in windows]
        ages = [age + 1 if is_same else 1 for age, is_same in zip(ages, same, strict=True)]
        if holds in LOST and not there[here]:
            holds, starting = LOST[holds], 0.0
        if holds not in LOST:
            here = max(range(len(windows)), key=lambda pool: (there[pool], ages[pool]))
        chosen = policy(Standing(left, work, holds, there[here], ages[here] * terms.step, starting))
        starting = 0.0 if chosen is Hold.NONE else starting if chosen is holds else terms.change
        lost = min(starting, terms.step) if chosen is not Hold.BOTH else 0.0
        used = 0.0 if chosen is Hold.NONE else min(terms.step, work + lost)
        dollars += price(terms, chosen, used, starting) / HOUR
        work -= max(0.0, used - lost)
        if work <= 1e-6:
            return Outcome(dollars, left - used)
        starting = max(0.0, starting - terms.step)
        holds = Hold.LOW if chosen is Hold.BOTH and not starting else chosen
        left -= terms.step
    return Outcome(dollars, -work)


def over_the_least(
    pools: Sequence[Sequence[Window]], terms: Terms, left: float, work: float
) -> list[tuple[float, float]]:
    """For each window that all pools have: what a job pays that may use any of them, and the mean of jobs that may use
    one each, both over the least for any of them."""
    policy = partial(choose, Plan(terms, Pool(), left, left - work))
    ratios = []
    for windows in zip(*pools, strict=False):
        least = bound(together(windows), terms, left, work)
        any_of_them = play_regions(policy, windows, terms, left, work)
        alone = [play(policy, window, terms, left, work) for window in windows]
        assert min(any_of_them.spare, *(each.spare for each in alone)) >= -1e-6, "late"
        mean = sum(each.dollars for each in alone) / len(alone)
        ratios.append((any_of_them.dollars / least, mean / least))
    return ratios
