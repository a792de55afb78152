"""The schedules of test_simulation.py that `check --quick` leaves out."""

from pathlib import Path

import pytest

from tests.simulation.test_simulation import A_TIME, SEEDS, play_all


@pytest.mark.parametrize("first", range(A_TIME, SEEDS, A_TIME))
def test_whatever_else_happens_the_rules_hold(tmp_path: Path, first: int) -> None:
    """The same of further seeds."""
    play_all(tmp_path, range(first, first + A_TIME))
