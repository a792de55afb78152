"""Curves as text and as PNG."""

from __future__ import annotations

import itertools
import math
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console

from cli.show import png
from cli.show.plot import Canvas, Curves, curves_of, panels, plot, telling


def text(*arguments: object) -> list[str]:
    out = StringIO()
    Console(file=out, width=200).print(plot(*arguments))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_line_goes_from_corner_to_corner() -> None:
    """A cell has two by four dots: the diagonal of one cell has all four rows, from lower left to upper right."""
    canvas = Canvas(1, 1)
    canvas.line((0, 0), (1, 1), "")
    (row,) = canvas.rows()
    assert row.plain == chr(0x2800 | 0x40 | 0x04 | 0x10 | 0x08)


def test_a_plot_has_its_ends_and_last_values() -> None:
    """The axes show where they begin and end; the legend has each curve's last value."""
    lines = text({"test_loss": [(0, 2.0), (50, 1.0), (1500, 0.25)]}, "loss", 60)
    assert lines[0] == "loss   ━ test_loss 0.25"
    assert lines[1].split("┤")[0].strip() == "2"
    assert lines[-3].split("┤")[0].strip() == "0.25"
    assert lines[-1].split() == ["0", "step", "1,500"]
    assert all(len(line) <= 60 for line in lines)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.floats(allow_nan=True, allow_infinity=True, width=32)),
        min_size=1,
        max_size=9,
    )
)
def test_any_numbers_can_be_plotted(points: list[tuple[int, float]]) -> None:
    """Flat curves, huge and tiny numbers, nan and inf always give a plot; a single number, or none, gives words."""
    lines = text({"x": points}, "x", 40)
    assert len(lines) == (13 if sum(math.isfinite(y) for _, y in points) > 1 else 1)


def test_metrics_of_one_kind_share_a_panel() -> None:
    """train_ and test_ of one name are drawn together; without --name every metric is drawn except those of speed."""
    names = ["test_loss", "train_loss", "test_accuracy", "world_size"]
    assert panels(names) == {
        "accuracy": ["test_accuracy"],
        "loss": ["test_loss", "train_loss"],
        "world_size": ["world_size"],
    }
    assert panels(["loss", "val_loss", "train/loss"]) == {"loss": ["loss", "train/loss", "val_loss"]}
    assert telling(names) == ["test_loss", "train_loss", "test_accuracy"]
    assert telling(["loss", "accuracy", "val_loss", "train/f1"]) == ["loss", "accuracy", "val_loss", "train/f1"]
    assert telling(["learning_rate", "tokens_per_second"]) == ["learning_rate", "tokens_per_second"]


def test_series_become_curves() -> None:
    """The chosen metrics that have points become curves of step and value; times are left out."""
    series = {"a": [[1, 0.5, 1e9], [2, 0.25, None]], "b": [[1, 1, None]], "c": []}
    assert curves_of(series, ["a", "c"]) == {"a": [(1.0, 0.5), (2.0, 0.25)]}


def test_the_picture_shows_every_curve(tmp_path: Path) -> None:
    """The PNG opens, and the panels of loss and accuracy both have the colours of the test and the training curve."""
    loss = [(float(step), 2 * 0.97**step) for step in range(100)]
    curves: Curves = {
        "train_loss": loss,
        "test_loss": loss[::20],
        "train_accuracy": [(x, 1 - y / 3) for x, y in loss],
        "test_accuracy": [(x, 1 - y / 2) for x, y in loss[::20]],
    }
    png.draw(curves, "mnist-1234", tmp_path / "new" / "curves.png", "98.00% test accuracy")
    with Image.open(tmp_path / "new" / "curves.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    middle = pixels.shape[1] // 2
    for half in (pixels[:, :middle], pixels[:, middle:]):
        for colour in png.COLOURS[:2]:
            rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
            assert (half == rgb).all(axis=2).sum() > 200


@pytest.mark.parametrize(
    "curves",
    [
        {"loss": [(0.0, 1.0)], "test_a": [(0.0, 1.0), (1.0, 2.0)], "b": [(0.0, 0.0), (5.0, 1.0)]},
        {"train_loss": [(3.0, 0.0)]},
        {"test_accuracy": [(0.0, 0.5)]},
        {"accuracy": [(0.0, 55.0), (1.0, 98.0)], "reward": [(0.0, -3.0), (1.0, 4.0)]},
    ],
)
def test_any_curves_can_be_drawn(tmp_path: Path, curves: Curves) -> None:
    """One point, zeros, percentages, negative values and three kinds of metric all give a picture."""
    png.draw(curves, "a run", tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as image:
        image.verify()


def test_a_long_curve_is_smoothed_and_keeps_its_level() -> None:
    """The running mean lies between the extremes and starts and ends with the curve; a short curve stays unchanged."""
    noisy = [(float(x), 1.0 + (-1) ** x) for x in range(200)]
    smooth = png.smooth(noisy)
    assert [x for x, _ in smooth] == [x for x, _ in noisy]
    assert all(0.5 < y < 1.5 for _, y in smooth)
    assert png.smooth(noisy[:10]) == noisy[:10]


@given(st.lists(st.floats(0, 1), max_size=6))
def test_labels_lie_apart(heights: list[float]) -> None:
    """However close the curves end, their labels are one height apart, in order, inside the panel."""
    moved = png.spread(sorted(heights))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in moved)
    assert all(b - a >= png.LEAST_GAP - 1e-9 for a, b in itertools.pairwise(moved))
