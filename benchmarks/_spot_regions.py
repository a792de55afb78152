"""One job on one node from any of several pools, such as low-priority clusters in several regions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks._spot import Window, bound, play, play_regions
from shared.deadlines.decide import choose
from shared.deadlines.plan import Plan, Terms
from shared.deadlines.pool import Pool


def together(windows: Sequence[Window]) -> Window:
    """Return a pool that has a node whenever at least one of these pools has a node."""
    return Window("any", 0, [any(states) for states in zip(*(each.steps for each in windows), strict=True)], ())


def over_the_least(
    pools: Sequence[Sequence[Window]], terms: Terms, left: float, work: float
) -> list[tuple[float, float]]:
    """Return two cost ratios for each window that all pools share: the cost of a job that may use any pool, and the
    mean cost of jobs that may use one pool each. Both are divided by the least possible cost with any pool."""
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
