"""A tree-structured Parzen estimator: find the places in the unit cube where the next trial is likely to be good.
Pure.

Densities l(x) of the good points and g(x) of the others are estimated, and of CANDIDATES points drawn from l the one
with the largest l(x) / g(x) is taken (Bergstra et al. 2011, https://papers.nips.cc/paper/4443). Both densities are
products over all dimensions, as in BOHB (https://arxiv.org/abs/1807.01774), mixed with one uniform component. A kernel
is normal and truncated to the interval; its width follows Scott's rule. For a choice, a kernel keeps the point's value
with probability n / (n + k), with n points and k values, and is uniform otherwise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from statistics import NormalDist

Point = list[float]  # one coordinate from 0 up to 1 for each dimension
GOOD_PART, MOST_GOOD, LEAST_GOOD = 0.15, 25, 2
CANDIDATES = 24
WIDTH, LEAST_WIDTH = 0.2, 0.01  # of a kernel: for one point, and for very many
_NORMAL = NormalDist()


class Dice:
    """Pseudo-random numbers from a hash of the seed and their place: the same on every machine and Python version."""

    def __init__(self, seed: int) -> None:
        self._seed, self._place = seed, 0

    def random(self) -> float:
        """A number from 0 up to 1."""
        self._place += 1
        digest = hashlib.blake2b(f"{self._seed} {self._place}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest) >> 11) / 2**53

    def randrange(self, count: int) -> int:
        return int(self.random() * count)


def propose(
    scored: Sequence[tuple[Point, float]], running: Sequence[Point], choices: Sequence[int], dice: Dice
) -> Point:
    """The next point. `choices` has the number of values of each choice, and 0 for a number.

    A higher score is better. Points that are still running count as bad, so that no two trials are nearly the same.
    """
    points = [point for point, _ in sorted(scored, key=lambda each: -each[1])]
    good = max(LEAST_GOOD, min(MOST_GOOD, math.ceil(GOOD_PART * len(points))))
    likely, unlikely = Density(points[:good], choices), Density([*points[good:], *running], choices)
    candidates = [likely.draw(dice) for _ in range(CANDIDATES)]
    return max(candidates, key=lambda point: likely.at(point) / unlikely.at(point))


def middle_of(place: int, count: int) -> float:
    """The coordinate of a choice's value."""
    return (place + 0.5) / count


class Density:
    """A mixture of a kernel for each point, and a uniform component with the weight of a kernel."""

    def __init__(self, points: Sequence[Point], choices: Sequence[int]) -> None:
        self._points, self._choices = points, choices
        count = max(len(points), 1)
        self._width = max(WIDTH * math.pow(count, -1 / (len(choices) + 4)), LEAST_WIDTH)
        self._same = [count / (count + values) for values in choices]
        self._heights = [[0.0 if k else self._height(at) for at, k in zip(p, choices, strict=True)] for p in points]

    def draw(self, dice: Dice) -> Point:
        """A random point of this density."""
        place = dice.randrange(len(self._points) + 1)
        if place == len(self._points):
            return [middle_of(dice.randrange(k), k) if k else dice.random() for k in self._choices]
        return [self._near(place, dimension, dice) for dimension in range(len(self._choices))]

    def at(self, point: Point) -> float:
        """The density at a point, always above 0."""
        density = 1.0
        for center, heights in zip(self._points, self._heights, strict=True):
            kernel = 1.0
            for there, here, height, k, same in zip(center, point, heights, self._choices, self._same, strict=True):
                if k:
                    kernel *= 1 - same + (same * k if abs(there - here) * k < 0.5 else 0.0)
                else:
                    kernel *= height * math.exp(-0.5 * ((there - here) / self._width) ** 2)
            density += kernel
        return density / (len(self._points) + 1)

    def _near(self, place: int, dimension: int, dice: Dice) -> float:
        center, k = self._points[place][dimension], self._choices[dimension]
        if k:
            return center if dice.random() < self._same[dimension] else middle_of(dice.randrange(k), k)
        low, high = _NORMAL.cdf(-center / self._width), _NORMAL.cdf((1 - center) / self._width)
        quantile = low + dice.random() * (high - low)
        at = center + self._width * _NORMAL.inv_cdf(min(max(quantile, 1e-9), 1 - 1e-9))
        return min(max(at, 0.0), math.nextafter(1.0, 0.0))

    def _height(self, center: float) -> float:
        """The kernel's density at the center: a normal distribution, truncated to the unit interval."""
        inside = _NORMAL.cdf((1 - center) / self._width) - _NORMAL.cdf(-center / self._width)
        return 1 / (math.sqrt(2 * math.pi) * self._width * inside)
