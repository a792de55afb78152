"""Curves as a PNG, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CliError, extra
from .plot import Point, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_INCHES, DOTS_PER_INCH = (5.5, 3.8), 160  # of one panel
INK, GREY, RULE = "#1f2328", "#7d8590", "#e7e9ec"
COLOURS = ("#7a9cc6", "#c2452d", "#5a9367", "#c29a2d", "#8a6fb0", "#4f7f8f")
POINTS_MARKED = 40  # a curve of no more has a mark at each point


def draw(curves: dict[str, Sequence[Point]], title: str, path: Path) -> None:
    """Write a PNG with one panel for each kind of metric. Raises CliError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise CliError(f"--png needs matplotlib: {extra('png')}.") from exc
    kinds = panels(list(curves))
    columns = min(2, len(kinds))
    rows = -(-len(kinds) // columns)
    figure = Figure(
        figsize=(SIZE_INCHES[0] * columns, SIZE_INCHES[1] * rows + 0.5), dpi=DOTS_PER_INCH, layout="constrained"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, weight="bold", color=INK)
    places: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (kind, names) in zip(places, kinds.items(), strict=False):
        _panel(axes, kind, {name: curves[name] for name in names})
    for axes in places[len(kinds) :]:
        axes.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _panel(axes: Axes, kind: str, curves: dict[str, Sequence[Point]]) -> None:
    for colour, (name, points) in zip(COLOURS * len(curves), curves.items(), strict=False):
        marker = "o" if len(points) <= POINTS_MARKED else None
        label = f"{name} {points[-1][1]:.4g}"
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.8, marker=marker, markersize=3.5, label=label)
    axes.set_title(kind.replace("_", " "), loc="left", fontsize=11, color=INK)
    axes.set_xlabel("step", color=GREY, fontsize=9)
    axes.tick_params(colors=GREY, labelsize=9, length=0)
    axes.grid(axis="y", color=RULE)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
