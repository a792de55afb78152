"""How benchmarks/trainers.py evaluates a training. The gate does not run the trainings themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import trainers
from benchmarks.trainers import CASES, Case


def row(step: int, seconds: float, epoch: int = 1, **values: float) -> dict[str, float]:
    return {"step": step, "epoch": epoch, "time": seconds, "cpu": seconds / 2, "train_loss": 1.0, **values}


def case(metric: str, limit: float) -> Case:
    return Case("mnist", "mnist", "", (metric, limit), per_step=10)


def test_speed_leaves_out_the_start_and_what_lies_between_two_epochs() -> None:
    """Speed counts the steps between rows of the same epoch, without the first fifth of them."""
    slow_start = [row(1, 0), row(2, 100)]
    rows = [*slow_start, row(3, 101), row(4, 102), row(5, 900, epoch=2), row(6, 901, epoch=2), row(7, 902, epoch=2)]
    assert trainers.speed(case("train_loss", 0), rows, "time") == 10.0
    assert trainers.speed(case("train_loss", 0), rows, "cpu") == 20.0


def test_speed_is_unknown_without_a_clock() -> None:
    """If the system reports no CPU time, there is no speed by CPU time."""
    assert trainers.speed(case("train_loss", 0), [row(1, 0), row(2, 0)], "cpu") is None


def test_a_goal_is_reached_from_its_own_side() -> None:
    """A loss falls to its goal, any other metric rises to it, and a goal may stay out of reach."""
    rows = [row(1, 1, test_accuracy=0.5, val_loss=3.0), row(2, 2, test_accuracy=0.9, val_loss=1.0)]
    assert trainers.goal_row(case("test_accuracy", 0.9), rows) == rows[1]
    assert trainers.goal_row(case("val_loss", 3.0), rows) == rows[0]
    assert trainers.goal_row(case("test_accuracy", 0.95), rows) is None


def test_without_a_goal_the_end_counts() -> None:
    """A case without a goal measures the time to the last row."""
    rows = [row(1, 1), row(2, 2)]
    assert trainers.goal_row(Case("mnist", "mnist", "", None, per_step=10), rows) == rows[1]


@pytest.mark.parametrize("compared", CASES, ids=lambda each: each.name)
def test_both_sides_get_the_same_data_and_rates(compared: Case) -> None:
    """Each case has a trainer and a peer, and both find the data in their options."""
    ours, peer = (trainers.command(compared, side, Path("here"), Path("out"), 1) for side in (True, False))
    assert (trainers.ROOT / "trainers" / compared.trainer / "train.py").exists()
    assert (trainers.ROOT / "benchmarks" / "peers" / f"{compared.trainer}.py").exists()
    assert "here" in ours
    assert "here" in peer
