"""Curves as a PNG, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CliError, extra
from .costs import dollars
from .plot import Curves, Point, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_INCHES, DOTS_PER_INCH = (5.5, 4.4), 160  # for one panel
INK, GREY, RULE = "#1f2328", "#7d8590", "#e7e9ec"
COLOURS = ("#c2452d", "#7a9cc6", "#5a9367", "#c29a2d", "#8a6fb0", "#4f7f8f")  # test before train, in the order of names
POINTS_MARKED = 25  # a curve of at most this many points has marks, a longer one is drawn as its running mean
DECADES_FROM = 20  # from this ratio of highest to lowest value, the axis is logarithmic
LEAST_GAP = 0.075  # between two labels, as a share of the panel's height


def draw(curves: Curves, title: str, path: Path, facts: str = "") -> None:
    """Write a PNG with one panel for each group of metrics, and with `facts` below the title.

    Raises CliError if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise CliError(f"--png needs matplotlib: {extra('png')}.") from exc
    kinds = panels(list(curves))
    columns = min(2, len(kinds))
    rows = -(-len(kinds) // columns)
    width, height = SIZE_INCHES[0] * columns, SIZE_INCHES[1] * rows + 0.6
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white", layout="constrained")
    figure.suptitle(f"{title}\n\n", x=0.01, ha="left", fontsize=13, weight="bold", color=INK)
    figure.text(0.01, 1 - 0.42 / height, facts, fontsize=10, color=GREY, va="top")
    places: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (kind, names) in zip(places, kinds.items(), strict=False):
        _panel(axes, kind, {name: curves[name] for name in names})
    for axes in places[len(kinds) :]:
        axes.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def draw_days(days: Sequence[dict[str, Any]], kinds: Sequence[str], title: str, path: Path) -> None:
    """Write a PNG with a bar for each day, stacked by kind of cost, in dollars. Raises CliError if matplotlib is
    not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise CliError(f"--png needs matplotlib: {extra('png')}.") from exc
    width = min(16.0, max(SIZE_INCHES[0], 1.5 + 0.35 * len(days)))
    figure = Figure(figsize=(width, SIZE_INCHES[1]), dpi=DOTS_PER_INCH, facecolor="white", layout="constrained")
    axes = figure.subplots()
    _frame(axes, title)
    axes.set_xlabel("")
    names, below = [day["day"][5:] for day in days], [0.0] * len(days)
    for colour, kind in zip(COLOURS, kinds, strict=False):
        heights = [day[kind] for day in days]
        if any(heights):
            axes.bar(names, heights, bottom=below, color=colour, width=0.8, label=f"{kind} {dollars(sum(heights))}")
            below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylabel("dollars", color=GREY, fontsize=9.5)
    axes.set_xticks(range(0, len(names), -(-len(names) // 31) or 1))
    axes.tick_params(axis="x", rotation=60 if len(days) > 8 else 0)
    axes.margins(x=max(0.02, 0.6 / (len(days) or 1)))
    if any(below):
        axes.legend(frameon=False, fontsize=9.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def draw_replay(curves: Curves, taken: Sequence[float], title: str, path: Path) -> None:
    """Write a PNG of a trace's replay over its seconds: nodes in the trace and processes at work above, losses below.

    `taken` are the seconds at which a node was evicted; each is a vertical line through both panels. Raises CliError if
    matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise CliError(f"--png needs matplotlib: {extra('png')}.") from exc
    figure = Figure(figsize=(9.0, 6.0), dpi=DOTS_PER_INCH, facecolor="white", layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, weight="bold", color=INK)
    above, below = figure.subplots(2, 1, sharex=True)
    lost = {name: points for name, points in curves.items() if "loss" in name}
    for axes, chosen, kind in ((above, curves.keys() - lost.keys(), "nodes"), (below, lost.keys(), "loss")):
        _frame(axes, kind)
        for at in taken:
            axes.axvline(at, color=COLOURS[0], linewidth=0.8, linestyle=":", label="taken" if at == taken[0] else None)
        for colour, name in zip(COLOURS[1:], sorted(chosen), strict=False):
            axes.plot(*zip(*curves[name], strict=True), color=colour, linewidth=2, label=name)
        axes.set_ylim(bottom=0)
        if chosen:
            axes.legend(frameon=False, fontsize=9.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    above.set_xlabel("")
    below.set_xlabel("seconds of the replay")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def smooth(curve: Sequence[Point]) -> list[Point]:
    """Return the curve's running mean over a twentieth of its points. A curve of at most POINTS_MARKED points is
    returned unchanged."""
    if len(curve) <= POINTS_MARKED:
        return list(curve)
    half = max(1, len(curve) // 40)
    windows = (curve[max(0, i - half) : i + half + 1] for i in range(len(curve)))
    return [(x, sum(y for _, y in window) / len(window)) for (x, _), window in zip(curve, windows, strict=True)]


def _panel(axes: Axes, kind: str, curves: Curves) -> None:
    _frame(axes, kind)
    share = kind.endswith("accuracy")
    ends: list[tuple[Point, str, str]] = []
    for colour, (name, points) in zip(COLOURS * len(curves), curves.items(), strict=False):
        mean = smooth(points)
        if len(points) > POINTS_MARKED:  # draw the points faintly behind their mean
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.9, alpha=0.35)
        marker = "o" if len(points) <= POINTS_MARKED else None
        axes.plot(*zip(*mean, strict=True), color=colour, linewidth=2, marker=marker, markersize=4, clip_on=False)
        last = f"{points[-1][1]:.2%}" if share else f"{points[-1][1]:.3g}"
        ends.append((mean[-1], f"{name.removesuffix(f'_{kind}')} {last}", colour))
    _limits(axes, [smooth(points) for points in curves.values()], share)
    _end_labels(axes, ends)


def _limits(axes: Axes, curves: Sequence[Sequence[Point]], share: bool) -> None:
    """Set the axes so that the curves fill the height: accuracies end at 1, and values over a factor of more than
    DECADES_FROM get a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    values = [y for curve in curves for _, y in curve]
    low, high = min(values), max(values)
    axes.set_xlim(0, max(1.0, *(x for curve in curves for x, _ in curve)))
    if share and low >= 0 and high <= 1:
        axes.set_ylim(max(0.0, math.floor(10 * low - 0.5) / 10), 1.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    elif low > 0 and high > DECADES_FROM * low:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(low * 0.8, high * 1.25)
    elif low >= 0:
        axes.set_ylim(0, high * 1.05 or 1.0)


def _end_labels(axes: Axes, ends: Sequence[tuple[Point, str, str]]) -> None:
    """Write each curve's name and last value at the end of the curve. Labels of curves that end close together are
    moved apart."""
    to_panel = axes.transData + axes.transAxes.inverted()
    placed = sorted((float(to_panel.transform(point)[1]), text, colour) for point, text, colour in ends)
    for height, (_, text, colour) in zip(spread([height for height, *_ in placed]), placed, strict=True):
        axes.text(1.02, height, text, transform=axes.transAxes, color=colour, fontsize=9.5, weight="bold", va="center")


def spread(heights: Sequence[float]) -> list[float]:
    """Move sorted heights, from 0 to 1, apart by LEAST_GAP. All heights stay at or below 1."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LEAST_GAP if moved else 0.0))
    ceiling = 1.0
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - LEAST_GAP
    return moved


def _frame(axes: Axes, kind: str) -> None:
    axes.set_title(kind.replace("_", " "), loc="left", fontsize=11.5, color=INK, pad=10)
    axes.set_xlabel("step", color=GREY, fontsize=9.5)
    axes.tick_params(colors=GREY, labelsize=9.5, length=0, pad=6)
    axes.grid(axis="y", color=RULE, linewidth=1)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#c9ced4")
