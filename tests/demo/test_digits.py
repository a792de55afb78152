"""The digits that the demo drops."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from local import digits


def test_the_digits_are_always_the_same_bytes(tmp_path: Path) -> None:
    """Every call writes the same four files, so the same digits are never trained twice."""
    one, two = digits.write(tmp_path / "one"), digits.write(tmp_path / "two")
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_enlarged_digits_keep_their_shape() -> None:
    """A digit of 8 x 8 becomes 28 x 28 with an empty border of 2, and its brightness stays in the same places."""
    small = np.zeros((1, 8, 8))
    small[0, 2, 5] = 16
    large = digits.enlarge(small)[0]
    assert large.shape == (28, 28)
    assert np.unravel_index(large.argmax(), large.shape) == (2 + 2 * 3 + 1, 2 + 5 * 3 + 1)
    assert large.max() == 255
    assert not large[:2].any()
    assert not large[:, -2:].any()
