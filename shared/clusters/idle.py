"""Choose how long an idle cluster stays up, learned from the gaps between its jobs. Pure.

A start costs B seconds of node time. A gap of g seconds costs g if the cluster waits at least g, else the time waited
plus B. With the gap known in advance, the best cost is min(g, B). Waiting B seconds never costs more than twice that
(the ski rental problem; Karlin and others, Competitive Snoopy Caching, 1988), and no rule without knowledge of the gaps
can guarantee less.

The timeout that would have been cheapest over the last gaps is usually much better, but guarantees nothing by itself:
if each gap is a second longer than the last, it misses every gap by that second. So it is used only while the savings
so far, which start at the cost of one start, cover the most that the next gap can lose; otherwise the timeout is B. So
over any sequence of gaps: cost <= 2 * best in hindsight + B.

The first gaps use, under the same condition, the timeout that would have been cheapest over other clusters' gaps.
Without these, the timeout is drawn from [0, B] with a density that grows as exp(t / B): on average, gaps that don't
depend on the draw cost at most e / (e - 1) = 1.58 times the best (Karlin and others, Competitive Randomized Algorithms
for Nonuniform Problems, 1994).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from hashlib import sha256

REMEMBERED = 200  # gaps
LEAST_SEEN = 4  # gaps; the fifth uses what these teach
LEAST_OTHERS = 30  # gaps of other clusters; fewer teach nothing about a new one


class IdleTime:
    """The idle time for one cluster, updated after each gap. A start costs `start_seconds` of node time.

    `others`: gaps of other clusters. `name` is the cluster's, on which the drawn timeouts depend: the same gaps always
    give the same idle times.
    """

    def __init__(
        self, start_seconds: float, gaps: Iterable[float] = (), others: Iterable[float] = (), name: str = ""
    ) -> None:
        if start_seconds <= 0:
            raise ValueError(f"A start takes {start_seconds} s; use more than 0.")
        self.start_seconds = start_seconds
        self._others = sorted(others)
        self._name = name
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._saved = start_seconds  # 2 * best in hindsight + B - cost, never below zero
        self.seconds = self._next()  # the idle time in the next gap
        for gap in gaps:
            self.see(gap)

    def see(self, gap: float) -> None:
        """Record a gap of this many seconds. `seconds` then applies to the next gap."""
        self._saved += 2 * min(gap, self.start_seconds) - cost(gap, self.seconds, self.start_seconds)
        self._last.append(gap)
        insort(self._sorted, gap)
        if len(self._last) > REMEMBERED:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self.seconds = self._next()

    def _next(self) -> float:
        start = self.start_seconds
        seconds = cheapest(self._sorted, start) if len(self._last) >= LEAST_SEEN else self._first()
        return seconds if self._saved >= start - seconds else start

    def _first(self) -> float:
        if len(self._others) >= LEAST_OTHERS:
            return cheapest(self._others, self.start_seconds)
        digest = sha256(f"{self._name} {len(self._last)}".encode()).digest()
        share = int.from_bytes(digest[:4]) / 2**32
        return self.start_seconds * math.log(1 + share * (math.e - 1))


def auto_idle_seconds(
    gaps: Iterable[float], start_seconds: float, others: Iterable[float] = (), name: str = ""
) -> float:
    """Return the idle time of a cluster with these gaps, oldest first: at most `start_seconds`. See IdleTime."""
    return IdleTime(start_seconds, gaps, others, name).seconds


def cost(gap: float, timeout: float, start_seconds: float) -> float:
    """Return the node seconds of a gap with this timeout."""
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
