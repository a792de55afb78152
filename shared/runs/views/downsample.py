"""Downsample a curve in bounded memory without losing spikes. Pure.

Keeping every k-th point would lose single outliers, so each stretch of k points keeps its lowest and its highest point.
"""

from __future__ import annotations

Point = tuple[float, float, float | None]  # step, value, Unix time
_Seen = tuple[int, Point]  # a point with its position in the series


class Thinned:
    """A series with the lowest and highest point of each stretch, and the first and last point.

    The stretches double in length as the series grows.
    """

    def __init__(self, limit: int = 2000) -> None:
        self._most = max(1, (limit - 2) // 2)
        self._length = 1  # points in a stretch
        self._stretches: list[tuple[_Seen, _Seen]] = []
        self._seen = 0
        self._ends: list[_Seen] = []

    def add(self, point: Point) -> None:
        seen = (self._seen, point)
        if self._seen % self._length == 0:
            if len(self._stretches) == self._most:
                self._double()
            if self._seen % self._length == 0:
                self._stretches.append((seen, seen))
        low, high = self._stretches[-1]
        if point[1] < low[1][1]:
            self._stretches[-1] = (seen, high)
        elif point[1] > high[1][1]:
            self._stretches[-1] = (low, seen)
        self._ends = [self._ends[0] if self._ends else seen, seen]
        self._seen += 1

    def points(self) -> list[Point]:
        """At most `limit` points (at least four), in their original order."""
        kept = {at: point for stretch in self._stretches for at, point in stretch}
        return [point for _, point in sorted((kept | dict(self._ends)).items())]

    def _double(self) -> None:
        self._length *= 2
        pairs = zip(self._stretches[::2], [*self._stretches[1::2], None], strict=False)
        self._stretches = [_joined(a, b) if b else a for a, b in pairs]


def _joined(a: tuple[_Seen, _Seen], b: tuple[_Seen, _Seen]) -> tuple[_Seen, _Seen]:
    return min(a[0], b[0], key=_value), max(a[1], b[1], key=_value)


def _value(seen: _Seen) -> float:
    return seen[1][1]
