"""The Parzen estimator: its densities integrate to one, and its proposals improve."""

from __future__ import annotations

import pytest

from shared.sweeps.tpe import Density, Dice, middle_of, propose


def test_a_density_is_one_over_the_whole_cube() -> None:
    """The mean over evenly spread points is 1, also with kernels at the edge and with a choice."""
    density = Density([[0.02, middle_of(0, 3)], [0.5, middle_of(2, 3)]], [0, 3])
    points = [[(n + 0.5) / 2000, middle_of(k, 3)] for n in range(2000) for k in range(3)]
    assert sum(map(density.at, points)) / len(points) == pytest.approx(1, abs=1e-3)


def test_draws_follow_the_density() -> None:
    """The share of draws in each tenth equals the density there."""
    density, dice = Density([[0.1], [0.2], [0.9]], [0]), Dice(1)
    drawn = [density.draw(dice)[0] for _ in range(20_000)]
    assert all(0 <= each < 1 for each in drawn)
    for tenth in range(10):
        expected = sum(density.at([tenth / 10 + n / 1000 + 0.0005]) for n in range(100)) / 1000
        assert sum(int(each * 10) == tenth for each in drawn) / len(drawn) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_proposals_get_better(seed: int) -> None:
    """Of 60 points, the last twenty proposals are better than random ones; the right choice is found."""

    def value(point: list[float]) -> float:
        return -((point[0] - 0.8) ** 2) - (point[1] - 0.3) ** 2 + (0.3 if abs(point[2] - middle_of(1, 4)) < 0.1 else 0)

    dice = Dice(seed)
    points = [[dice.random(), dice.random(), middle_of(dice.randrange(4), 4)] for _ in range(20)]
    for _ in range(40):
        points.append(propose([(point, value(point)) for point in points], [], [0, 0, 4], dice))
    values = list(map(value, points))
    assert sum(values[-20:]) / 20 > sum(values[:20]) / 20 + 0.2
    assert max(values) > 0.29


def test_the_same_trials_give_the_same_point() -> None:
    """The draw depends on the points and the seed only."""
    scored = [([n / 10, 0.5], float(n)) for n in range(10)]
    one, other = (propose(scored, [[0.9, 0.9]], [0, 0], Dice(7)) for _ in range(2))
    assert one == other


def test_dice_are_even() -> None:
    """Each tenth of the interval has a tenth of the numbers; another seed gives other numbers."""
    dice = Dice(3)
    numbers = [dice.random() for _ in range(10_000)]
    assert all(900 < sum(int(10 * each) == tenth for each in numbers) < 1100 for tenth in range(10))
    assert Dice(4).random() != numbers[0] == Dice(3).random()
