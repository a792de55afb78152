"""Choose how long an idle cluster stays up, learned from the gaps between its jobs. Pure.

A start costs B seconds of node time. A gap of g seconds costs g if the cluster waits at least g, else the time waited
plus B. With the gap known in advance, the best cost is min(g, B). Waiting B seconds never costs more than twice that
(the ski rental problem; Karlin and others, Competitive Snoopy Caching, 1988), and no rule without knowledge of the gaps
can guarantee less.

The timeout that would have been cheapest over the last gaps is usually much better, but guarantees nothing by itself:
if each gap is a second longer than the last, it misses every gap by that second. So it is used only while the savings
so far, which start at the cost of one start, cover the most that the next gap can lose; otherwise the timeout is B. So
over any sequence of gaps: cost <= 2 * best in hindsight + B.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable

REMEMBERED = 200  # gaps
LEAST_SEEN = 30  # gaps; with fewer the timeout is B


class IdleTime:
    """The idle time for one cluster, updated after each gap. A start costs `start_seconds` of node time."""

    def __init__(self, start_seconds: float, gaps: Iterable[float] = ()) -> None:
        if start_seconds <= 0:
            raise ValueError(f"A start costs {start_seconds} s; it must cost more than nothing.")
        self.start_seconds = start_seconds
        self.seconds = start_seconds  # the idle time in the next gap
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._saved = start_seconds  # 2 * best in hindsight + B - cost, never below zero
        for gap in gaps:
            self.see(gap)

    def see(self, gap: float) -> None:
        """Record that a gap of this many seconds has ended. `seconds` then applies to the next gap."""
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
    """Return the idle time of a cluster with these gaps, oldest first: at most `start_seconds`, and exactly that until
    30 gaps are known.
    """
    return IdleTime(start_seconds, gaps).seconds


def cost(gap: float, timeout: float, start_seconds: float) -> float:
    """Return the node seconds that a gap costs with this timeout."""
    return gap if gap <= timeout else timeout + start_seconds


def cheapest(ordered: list[float], start_seconds: float) -> float:
    """Return the timeout up to `start_seconds` with the least cost over these sorted gaps; the shortest of equals.

    The cost falls only where a gap ends, so the candidates are 0 and the gaps themselves.
    """
    best, best_cost, waited = 0.0, len(ordered) * start_seconds, 0.0
    for index in range(bisect_right(ordered, start_seconds)):
        gap = ordered[index]
        waited += gap
        total = waited + (len(ordered) - index - 1) * (gap + start_seconds)
        if total < best_cost:
            best, best_cost = gap, total
    return best
