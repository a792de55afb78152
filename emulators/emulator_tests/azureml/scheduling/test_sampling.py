"""Each kind of sampling draws from the whole space, continues unchanged after a restart, and a grid has each
combination once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from emulator_tests.azureml.bodies.test_sweep_body import GOOD
from emulators.azureml.bodies import sweep_body
from emulators.azureml.scheduling.sampling import Drawn, Sampling

CHOICES = {"a": ["choice", [[1, 2, 3]]], "b": ["choice", [["x", "y"]]]}
SPACE = {"lr": ["uniform", [0.0, 1.0]], "kind": ["choice", [["a", "b"]]]}


def sampling(kind: str, space: dict[str, Any] = SPACE, drawn: Sequence[Drawn] = ()) -> Sampling:
    name, _, rule = kind.partition("-")
    algorithm = {"samplingAlgorithmType": name, **({"rule": rule} if rule else {})}
    body = {**GOOD, "samplingAlgorithm": algorithm, "searchSpace": space}
    return Sampling("sweep", sweep_body.parse("sweep", body), drawn)


@pytest.mark.parametrize("kind", ["Random", "Random-Sobol", "Bayesian"])
def test_a_restart_draws_what_comes_next(kind: str) -> None:
    """A sweep that restarts after five trials draws the same sixth trial as an uninterrupted sweep, and no trial is
    repeated."""
    before = sampling(kind)
    drawn = [before.draw() for _ in range(6)]
    sixth = sampling(kind, drawn=drawn[:5]).draw()
    assert all(sixth["lr"] != one["lr"] for one in drawn[:5])
    if kind != "Bayesian":  # its draws depend on the order of the reports
        assert sixth == drawn[5]


def test_a_grid_has_each_combination_once() -> None:
    """Three values times two values are six trials, even if more trials are allowed."""
    grid = sampling("Grid", CHOICES)
    assert grid.most == 6
    assert {(drawn["a"], drawn["b"]) for drawn in (grid.draw() for _ in range(6))} == {
        (a, b) for a in range(3) for b in range(2)
    }


def test_sobol_fills_the_space_evenly() -> None:
    """Each eighth of the range gets its share of 64 draws, except for the first draw, which Optuna draws
    independently."""
    sobol = sampling("Random-Sobol")
    drawn = [sobol.draw()["lr"] for _ in range(64)]
    counts = [sum(part / 8 <= each < (part + 1) / 8 for each in drawn) for part in range(8)]
    assert all(7 <= count <= 9 for count in counts), counts


def test_bayesian_sampling_learns() -> None:
    """After forty trials of a parabola, the draws are nearer to the minimum than at first."""
    bayesian = sampling("Bayesian", {"x": ["uniform", [-10.0, 10.0]]})
    far = []
    for number in range(40):
        drawn = bayesian.draw()["x"]
        far.append(abs(drawn - 3))
        bayesian.report(number, (drawn - 3) ** 2)
    assert sum(far[30:]) < sum(far[:10])
    assert min(far) < 0.5


def test_a_trial_that_failed_teaches_nothing() -> None:
    """The trial is reported as failed, and sampling continues."""
    bayesian = sampling("Bayesian")
    bayesian.draw()
    bayesian.report(0, None)
    assert bayesian.draw()
