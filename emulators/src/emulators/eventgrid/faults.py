"""Fault knobs for tests, which imitate what a network may do to events. They are set with POST /control/faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields
from typing import Any

SHUFFLE_SECONDS = 1.0
LONGEST_SECONDS = 86_400.0  # Azure's time to live of an event
MOST_COPIES = 1000


class BadFaults(ValueError):
    """An unknown fault, or an invalid value of a fault."""


@dataclass(frozen=True)
class Faults:
    """`duplicate`: how often each event is delivered (1 is once). `shuffle`: spread deliveries over SHUFFLE_SECONDS
    in random order. `delay_seconds`: delay each delivery by a random time between the two values. `lose`: the
    share of events that never arrive, drawn for each subscription. `seed` makes the draws repeatable.
    `event_types` limits the knobs to these types."""

    duplicate: int = 1
    shuffle: bool = False
    delay_seconds: tuple[float, float] = (0.0, 0.0)
    lose: float = 0.0
    seed: int | None = None
    event_types: frozenset[str] | None = None
    _random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delays(self, event_type: str) -> list[float]:
        """Return the delay of each copy of an event, in seconds. An empty list means that the event is lost."""
        if self.event_types is not None and event_type not in self.event_types:
            return [0.0]
        if self._random.random() < self.lose:
            return []
        return [self._delay() for _ in range(self.duplicate)]

    def _delay(self) -> float:
        spread = self._random.uniform(0, SHUFFLE_SECONDS) if self.shuffle else 0.0
        return spread + self._random.uniform(*self.delay_seconds)


def read(spec: Any) -> Faults:
    """Read the body of POST /control/faults. Knobs that the body omits are off. Raises BadFaults."""
    known = {f.name for f in fields(Faults) if not f.name.startswith("_")}
    if not isinstance(spec, dict):
        raise BadFaults(f"the knobs are a JSON object, not {spec!r:.80}")
    if unknown := set(spec) - known:
        raise BadFaults(f"no knob {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    low, high = _pair(spec.get("delay_seconds") or [0.0, 0.0])
    duplicate, lose = spec.get("duplicate") or 1, spec.get("lose") or 0.0
    types, seed, shuffle = spec.get("event_types"), spec.get("seed"), spec.get("shuffle") or False
    if type(duplicate) is not int or not 1 <= duplicate <= MOST_COPIES:
        raise BadFaults(f"duplicate is {duplicate!r:.80}; it must be a whole number from 1 to {MOST_COPIES}")
    if type(lose) not in (int, float) or not 0 <= lose <= 1:
        raise BadFaults(f"lose is {lose!r:.80}; it must be a share from 0 to 1")
    if not isinstance(shuffle, bool) or not isinstance(seed, int | None):
        raise BadFaults(f"shuffle is true or false, seed a whole number; not {shuffle!r:.80} and {seed!r:.80}")
    if types is not None and not (isinstance(types, list) and all(isinstance(name, str) for name in types)):
        raise BadFaults(f"event_types is {types!r:.80}; it must be a list of types")
    chance = random.Random(seed)  # noqa: S311 (for tests, no secret)
    wanted = None if types is None else frozenset(types)
    return Faults(duplicate, shuffle, (low, high), float(lose), seed, wanted, chance)


def _pair(delay: Any) -> tuple[float, float]:
    if not isinstance(delay, list) or len(delay) != 2 or any(type(each) not in (int, float) for each in delay):
        raise BadFaults(f"delay_seconds is {delay!r:.80}; it must be [low, high]")
    low, high = delay
    if not 0 <= low <= high <= LONGEST_SECONDS:
        raise BadFaults(f"delay_seconds is {delay!r:.80}; it must be 0 <= low <= high <= {LONGEST_SECONDS:g}")
    return float(low), float(high)
