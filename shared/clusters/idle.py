"""How long an idle cluster stays up, learnt from the gaps between its jobs. Pure.

A start costs B seconds of node time. A gap of g seconds costs g if the cluster waits that long, else the time waited
and a start. Who knew the gap would pay min(g, B). Waiting B seconds never pays more than twice that (the ski rental
problem; Karlin and others, Competitive Snoopy Caching, 1988), and nothing that does not know the gaps can promise less.

The timeout that would have been cheapest over the last gaps is usually much better, but alone it promises nothing: of
gaps that grow by a second each time it would miss every one by that second. So it may be used only while what was saved
before, with one start's worth to begin with, covers the most that the next gap can lose; else B is waited. So over any
gaps at all: cost <= 2 * best in hindsight + B.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable

REMEMBERED = 200  # gaps
LEAST_SEEN = 30  # gaps; with fewer the timeout is B


class IdleTime:
    """The idle time for one cluster, as gap after gap is seen. A start costs `start_seconds` of node time."""

    def __init__(self, start_seconds: float, gaps: Iterable[float] = ()) -> None:
        if start_seconds <= 0:
            raise ValueError(f"A start costs {start_seconds} s; it must cost more than nothing.")
        self.start_seconds = start_seconds
        self.seconds = start_seconds  # to wait in the next gap
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._saved = start_seconds  # 2 * best in hindsight + B - cost, never below zero
        for gap in gaps:
            self.see(gap)

    def see(self, gap: float) -> None:
        """A gap of so many seconds has ended; `seconds` is then for the next one."""
        self._saved += 2 * min(gap, self.start_seconds) - cost(gap, self.seconds, self.start_seconds)
        self._last.append(gap)
        insort(self._sorted, gap)
        if len(self._last) > REMEMBERED:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self.seconds = self._next()

    def _next(self) -> float:
        start = self.start_seconds
        if len(self._last) < LEAST_SEEN:
            return start
        seconds = cheapest(self._sorted, start)
        return seconds if self._saved >= start - seconds else start


def auto_idle_seconds(gaps: Iterable[float], start_seconds: float) -> float:
    """The idle time of a cluster with these gaps, oldest first: at most `start_seconds`, and that until 30 are seen."""
    return IdleTime(start_seconds, gaps).seconds


def cost(gap: float, timeout: float, start_seconds: float) -> float:
    """The seconds of node time that a gap costs with this timeout."""
    return gap if gap <= timeout else timeout + start_seconds


def cheapest(ordered: list[float], start_seconds: float) -> float:
    """The timeout of at most `start_seconds` with the least cost over these sorted gaps; the shortest of several.

    The cost only falls where a gap ends, so the candidates are 0 and the gaps themselves.
    """
    best, best_cost, waited = 0.0, len(ordered) * start_seconds, 0.0
    for index in range(bisect_right(ordered, start_seconds)):
        gap = ordered[index]
        waited += gap
        total = waited + (len(ordered) - index - 1) * (gap + start_seconds)
        if total < best_cost:
            best, best_cost = gap, total
    return best
