"""Several pools of low-priority nodes: how likely each has nodes now, and where to ask for nodes. Pure.

A run knows a pool only from sightings: it held or awaited nodes there, or another run did. Between sightings, the model
of the pool (pool.py) says how likely the pool has nodes, and how long they would stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shared.deadlines.pool import KINDS, PERIOD, Pool, PoolPeriod, kind_of_age, learn, moves

LONGEST = 288  # periods after a sighting; a later moment is like this one
LIKELY = 0.6  # the chance from which a run counts on the nodes of a pool
PLAYED = 6000  # periods that `as_one` plays


@dataclass(frozen=True)
class Sighting:
    """The last time at which a pool was seen with nodes, or without nodes, and since when it was seen so. Seconds of
    any clock."""

    available: bool
    since: float
    at: float


def seen(before: Sighting | None, available: bool, now: float) -> Sighting:
    """The sighting after one more look at the pool."""
    same = before is not None and before.available is available
    return Sighting(available, before.since if before and same else now, now)


@dataclass(frozen=True)
class Prospect:
    """The chance that a pool has nodes now, and the expected seconds for which it would keep giving them: the mean over
    both cases, 0 without nodes. `usable`: the same without the change of nodes."""

    chance: float
    lasts: float
    usable: float

    def share(self, wasted: float) -> float:
        """The expected share of work in the time that asking this pool takes. An ask in vain takes `wasted` seconds."""
        return self.usable / (self.lasts + (1 - self.chance) * wasted)


def prospect(pool: Pool, sighting: Sighting | None, now: float, change: float) -> Prospect:
    """What asking this pool for nodes may give, where new nodes take `change` seconds."""
    if sighting is None:
        return _prospects(pool, 0, change)[LONGEST]
    state = sighting.available * KINDS + kind_of_age(sighting.at - sighting.since)
    return _prospects(pool, state, change)[min(LONGEST, round((now - sighting.at) / PERIOD))]


def best_pool(
    pools: Mapping[str, Pool], sightings: Mapping[str, Sighting], now: float, change: float, wasted: float
) -> str:
    """The pool to ask for nodes: the one with the largest share of work in the time that asking takes."""
    return max(pools, key=lambda name: prospect(pools[name], sightings.get(name), now, change).share(wasted))


def as_one(pools: Sequence[Pool], change: float) -> Pool:
    """The model of the pool that a run meets which always asks the best of these pools.

    The models are played with the same dice each time.
    """
    if len(pools) == 1:
        return pools[0]
    return learn(_spells_met({str(number): pool for number, pool in enumerate(pools)}, change))


def _spells_met(pools: Mapping[str, Pool], change: float) -> Iterator[PoolPeriod]:
    dice, holds, begun = _dice(), "", 0
    states, sightings = dict.fromkeys(pools, 0), dict[str, Sighting]()
    for period in range(PLAYED):
        now = period * PERIOD
        states = {name: _after(pools[name], state, next(dice)) for name, state in states.items()}
        asked = holds or best_pool(pools, sightings, now, change, PERIOD)
        there = states[asked] >= KINDS
        sightings[asked] = seen(sightings.get(asked), there, now)
        if there != bool(holds):
            yield PoolPeriod(bool(holds), (period - begun) * PERIOD)
            holds, begun = asked if there else "", period


def _dice() -> Iterator[float]:
    """Numbers from 0 to 1, by Knuth's MMIX generator."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state / 2**64


def _after(pool: Pool, state: int, chance: float) -> int:
    total = 0.0
    for likely, after in moves(pool, state, PERIOD):
        total += likely
        if chance < total:
            return after
    return state


@lru_cache(maxsize=128)
def _prospects(pool: Pool, state: int, change: float) -> list[Prospect]:
    """The prospects at each number of periods after a pool was in this state."""
    shares = [float(each == state) for each in range(2 * KINDS)]
    lasts = _lifetimes(pool)
    prospects = []
    for _ in range(LONGEST + 1):
        up = list(zip(shares[KINDS:], lasts, strict=True))
        usable = sum(share * max(0.0, seconds - change) for share, seconds in up)
        prospects.append(Prospect(sum(shares[KINDS:]), sum(share * seconds for share, seconds in up), usable))
        later = [0.0] * (2 * KINDS)
        for each, share in enumerate(shares):
            for likely, after in moves(pool, each, PERIOD):
                later[after] += share * likely
        shares = later
    return prospects


def _lifetimes(pool: Pool) -> list[float]:
    """The expected seconds until the pool has no nodes, by the kind of age of a spell with nodes."""
    lasts = [0.0] * KINDS
    for kind in reversed(range(KINDS)):
        (_, _), (stays, _), (ages, older) = moves(pool, KINDS + kind, PERIOD)
        lasts[kind] = (PERIOD + ages * lasts[older - KINDS]) / (1 - stays)
    return lasts
