"""Sobol points equal those of scipy, an independent implementation, and shifted points are as even."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

from shared.sweeps import sobol


def qmc() -> Any:
    """Return scipy's module of Sobol points, imported late so that collecting the tests stays fast."""
    from scipy.stats import qmc

    return qmc


def test_the_points_are_scipys() -> None:
    """Without a shift, each coordinate of the first 512 points equals scipy's to the last bit, in every dimension."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning that this number of points is not balanced
        expected = qmc().Sobol(64, scramble=False, bits=sobol.BITS).random(512).tolist()
    directions = sobol._directions()
    assert [[sobol._digits(row, k) / 2**sobol.BITS for row in directions] for k in range(512)] == expected


@pytest.mark.parametrize("seed", range(5))
def test_shifted_points_fill_each_interval_once(seed: int) -> None:
    """Each 64th of a parameter's range has one of 64 points, for any seed, and the points are evenly distributed."""
    points = [sobol.point(5, seed, number) for number in range(64)]
    assert all(sorted(int(64 * each) for each in column) == list(range(64)) for column in zip(*points, strict=True))
    dice = random.Random(seed)
    drawn = [[dice.random() for _ in range(5)] for _ in range(64)]
    assert qmc().discrepancy(points) < qmc().discrepancy(drawn) / 3


def test_a_point_follows_from_seed_and_number() -> None:
    """A point depends on the seed and its number only. Another seed shifts it, and dimensions beyond the table are
    filled."""
    assert sobol.point(3, 7, 5) == sobol.point(3, 7, 5) != sobol.point(3, 8, 5)
    many = sobol.point(80, 7, 5)
    assert len(many) == 80
    assert all(0 <= each < 1 for each in many)
    assert many == sobol.point(80, 7, 5)
