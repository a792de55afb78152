"""What stands above the columns where runs are compared."""

from __future__ import annotations

import pytest

from cli.show.comparison import short


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["run-0123456789abcdef", "run-9876543210abcdef"], ["run-0123", "run-9876"]),
        (["run-0123456789abcdef-t0", "run-0123456789abcdef-t12"], ["t0", "t12"]),
    ],
)
def test_names_are_as_long_as_tells_them_apart(names: list[str], shown: list[str]) -> None:
    """The first of a run's digits that differ; of the trials of one sweep their numbers."""
    assert short(names) == shown
