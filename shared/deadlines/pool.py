"""A statistical model of a pool of low-priority nodes: how likely nodes come and go, by the age of a spell. Pure.

A spell is a time in which the pool provides nodes, or provides none. A long spell is likely to continue, so the chance
that a spell ends is stored by the spell's age.

`ASSUMED` is the model of a pool without observations. Its chance falls with the power 0.7 of the age, from 0.45 in the
first ten minutes without nodes, and from 0.35 with nodes. Each assumed value counts as `CONFIDENCE` observed periods,
so the pool's own history takes over as it grows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

PERIOD = 600.0  # seconds; chances are per period
AGES = (600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0)  # seconds; the upper ends of all kinds of age but the last
KINDS = len(AGES) + 1
_MIDDLES = (1.0, 2.0, 4.5, 9.0, 18.0, 36.0, 72.0)  # periods
ASSUMED = tuple(tuple(first / middle**0.7 for middle in _MIDDLES) for first in (0.45, 0.35))
CONFIDENCE = 40.0  # periods
SUREST = 0.95  # no end is more certain than this within a period


@dataclass(frozen=True)
class PoolPeriod:
    """A number of seconds with nodes, or without nodes.

    `ended`: the opposite kind of spell followed, as far as known.
    """

    available: bool
    seconds: float
    ended: bool = True


@dataclass(frozen=True)
class Pool:
    """The chance per period that a spell ends, for each kind of age, without nodes and with nodes."""

    comes: tuple[float, ...] = ASSUMED[0]
    goes: tuple[float, ...] = ASSUMED[1]

    def chance(self, available: bool, kind: int, seconds: float) -> float:
        """The chance that a spell with this kind of age ends within `seconds`."""
        return 1 - math.pow(1 - (self.goes if available else self.comes)[kind], seconds / PERIOD)


def kind_of_age(seconds: float) -> int:
    """The number of the age class: 0 for a spell of at most ten minutes, 6 for more than eight hours."""
    return bisect_left(AGES, seconds)


def learn(spells: Iterable[PoolPeriod]) -> Pool:
    """The model of a pool with these spells."""
    ends = [[0.0] * len(_MIDDLES) for _ in ASSUMED]
    periods = [[0.0] * len(_MIDDLES) for _ in ASSUMED]
    for spell in spells:
        begin = 0.0
        for kind, end in enumerate((*AGES, float("inf"))):
            periods[spell.available][kind] += max(0.0, min(spell.seconds, end) - begin) / PERIOD
            begin = end
        ends[spell.available][kind_of_age(spell.seconds)] += spell.ended
    comes, goes = (
        tuple(
            min(SUREST, (end + assumed * CONFIDENCE) / (period + CONFIDENCE))
            for end, period, assumed in zip(ends[state], periods[state], ASSUMED[state], strict=True)
        )
        for state in (False, True)
    )
    return Pool(comes, goes)


def moves(pool: Pool, state: int, step: float) -> tuple[tuple[float, int], ...]:
    """The possible states of the pool after a step, with their chances: the other kind, the same age, or a higher
    age.
    """
    available, kind = divmod(state, KINDS)
    ends = pool.chance(bool(available), kind, step)
    other = (1 - available) * KINDS
    if kind == KINDS - 1:
        return (ends, other), (1 - ends, state), (0.0, state)
    ages = min(1.0, step / (AGES[kind] - (AGES[kind - 1] if kind else 0.0)))
    return (ends, other), ((1 - ends) * (1 - ages), state), ((1 - ends) * ages, state + 1)
