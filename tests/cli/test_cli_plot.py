"""Curves as text and as PNG."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli import png
from cli.plot import Canvas, panels, plot, telling


def text(*arguments: object) -> list[str]:
    out = StringIO()
    Console(file=out, width=200).print(plot(*arguments))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_line_goes_from_corner_to_corner() -> None:
    """Two by four dots a cell: the diagonal of one cell has all its four rows, from lower left to upper right."""
    canvas = Canvas(1, 1)
    canvas.line((0, 0), (1, 1), "")
    (row,) = canvas.rows()
    assert row.plain == chr(0x2800 | 0x40 | 0x04 | 0x10 | 0x08)


def test_a_plot_has_its_ends_and_last_values() -> None:
    """The axes say where they begin and end; the legend has each curve's last value."""
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
    """One point, flat curves, huge and tiny numbers, nan and inf: there is always a picture, or words that say why."""
    lines = text({"x": points}, "x", 40)
    assert len(lines) == (13 if any(math.isfinite(y) for _, y in points) else 1)


def test_metrics_of_one_kind_share_a_panel() -> None:
    """train_ and test_ of one name are drawn together; without --name only such are drawn, where there are any."""
    names = ["test_loss", "train_loss", "test_accuracy", "world_size"]
    assert panels(names) == {
        "accuracy": ["test_accuracy"],
        "loss": ["test_loss", "train_loss"],
        "world_size": ["world_size"],
    }
    assert telling(names) == ["test_loss", "train_loss", "test_accuracy"]
    assert telling(["reward"]) == ["reward"]


def test_a_picture_is_written(tmp_path: Path) -> None:
    """A PNG with a panel for each kind, also for three kinds and a curve of one point."""
    curves = {"loss": [(0.0, 1.0)], "test_a": [(0.0, 1.0), (1.0, 2.0)], "b": [(0.0, 0.0), (5.0, 1.0)]}
    png.draw(curves, "a run", tmp_path / "new" / "curves.png")
    assert (tmp_path / "new" / "curves.png").read_bytes().startswith(b"\x89PNG")
