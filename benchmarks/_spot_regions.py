"""One job on one node that may come from any of several pools, as from low-priority clusters in several regions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks._spot import Window, bound, play, play_regions
from shared.deadlines.decide import choose
from shared.deadlines.plan import Plan, Terms
from shared.deadlines.pool import Pool


def together(windows: Sequence[Window]) -> Window:
    """The pool that has a node whenever one of these has."""
    return Window("any", 0, [any(states) for states in zip(*(each.steps for each in windows), strict=True)], ())


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
