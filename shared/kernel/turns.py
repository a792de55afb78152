"""Poll many sources, most of which are empty, by turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Turns:
    """Polls a source with content at the last poll each time, and every other source once per `every` rounds."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._time = 0
        self._empty: set[str] = set()

    def next(self, names: Iterable[str]) -> list[str]:
        """Return the names to poll this round. The first round has every name."""
        self._time += 1
        turn = self._time % self._every
        return [name for place, name in enumerate(names) if name not in self._empty or place % self._every == turn]

    def saw(self, counts: Mapping[str, int]) -> None:
        """Record how much each polled source held."""
        self._empty = (self._empty | counts.keys()) - {name for name, count in counts.items() if count}
