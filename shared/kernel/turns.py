"""Asking many things, of which most hold nothing, by turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Turns:
    """What held something when it was last asked is asked each time, all else every so many times."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._time = 0
        self._empty: set[str] = set()

    def next(self, names: Iterable[str]) -> list[str]:
        """Those to ask this time: all of them the first time."""
        self._time += 1
        turn = self._time % self._every
        return [name for place, name in enumerate(names) if name not in self._empty or place % self._every == turn]

    def saw(self, counts: Mapping[str, int]) -> None:
        """How much each of those held."""
        self._empty = (self._empty | counts.keys()) - {name for name, count in counts.items() if count}
