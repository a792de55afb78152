"""Knobs for tests: what the network may do to events, done on purpose. Set over POST /control/faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields
from typing import Any

SHUFFLE_SECONDS = 1.0


class BadFaults(ValueError):
    """Knobs that don't exist or have no such value."""


@dataclass(frozen=True)
class Faults:
    """`duplicate`: how often each event is delivered (1 is once). `shuffle`: spread deliveries over SHUFFLE_SECONDS in
    random order. `delay_seconds`: hold each back for a random time between the two. `lose`: the share of events that
    never arrive, each subscription for itself. `seed` makes the choices repeatable; `event_types` limits them to some
    types."""

    duplicate: int = 1
    shuffle: bool = False
    delay_seconds: tuple[float, float] = (0.0, 0.0)
    lose: float = 0.0
    seed: int | None = None
    event_types: frozenset[str] | None = None
    _random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delays(self, event_type: str) -> list[float]:
        """After how many seconds each copy of an event goes out. Empty: the event is lost."""
        if self.event_types is not None and event_type not in self.event_types:
            return [0.0]
        if self._random.random() < self.lose:
            return []
        return [self._delay() for _ in range(self.duplicate)]

    def _delay(self) -> float:
        spread = self._random.uniform(0, SHUFFLE_SECONDS) if self.shuffle else 0.0
        return spread + self._random.uniform(*self.delay_seconds)


def read(spec: dict[str, Any]) -> Faults:
    """Read the body of POST /control/faults; what isn't named is off. Raises BadFaults."""
    known = {f.name for f in fields(Faults) if not f.name.startswith("_")}
    if unknown := set(spec) - known:
        raise BadFaults(f"no knob {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    delay = spec.get("delay_seconds") or (0.0, 0.0)
    types = spec.get("event_types")
    try:
        low, high = map(float, delay)
        duplicate, lose = int(spec.get("duplicate") or 1), float(spec.get("lose") or 0.0)
    except (TypeError, ValueError) as error:
        raise BadFaults(f"delay_seconds is [low, high], duplicate a whole number, lose a share: {error}") from None
    if not (0 <= low <= high and duplicate >= 1 and 0 <= lose <= 1):
        raise BadFaults("0 <= low <= high for delay_seconds, duplicate >= 1, and lose from 0 to 1")
    return Faults(
        duplicate,
        bool(spec.get("shuffle")),
        (low, high),
        lose,
        spec.get("seed"),
        None if types is None else frozenset(types),
        random.Random(spec.get("seed")),  # noqa: S311 (chance for tests, no secret)
    )
