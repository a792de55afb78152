"""Draw how a run learned, from the rows of its metrics.jsonl: loss and accuracy over the epochs, as a PNG.

$ python -m local.curves metrics.jsonl curves.png --run NAME
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

Row = dict[str, Any]
Series = list[tuple[float, float]]

INK, GREY, RULE = "#1f2328", "#7d8590", "#e7e9ec"
TRAIN, TEST = "#7a9cc6", "#c2452d"
SIZE_INCHES, DOTS_PER_INCH = (11.0, 4.9), 160
SMOOTHED_FROM = 25  # points; a curve of more is drawn as its running mean, with the points faint behind it
DECADES_FROM = 20  # highest over lowest loss, from which the axis is logarithmic
LEAST_GAP = 0.075  # between two labels, as a share of the panel's height


def read(path: Path) -> list[Row]:
    """The rows of a metrics.jsonl. A last line that is still being written is left out."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def draw(
    rows: Sequence[Row], path: Path, title: str, *, nodes: int | None = None, seconds: float | None = None
) -> None:
    """Write a PNG: loss on the left, accuracy on the right. Curves without rows stay away.

    Under `title`: the last test accuracy, the nodes (processes, where `nodes` is not given), the epochs, and the
    duration (between first and last row, where `seconds` is not given).
    """
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, facecolor="white")
    figure.subplots_adjust(left=0.058, right=0.892, top=0.745, bottom=0.115, wspace=0.42)
    figure.text(0.02, 0.925, title, fontsize=14, weight="bold", color=INK, va="center")
    figure.text(0.02, 0.86, subtitle(rows, nodes, seconds), fontsize=10.5, color=GREY, va="center")
    left, right = figure.subplots(1, 2)
    _panel(left, "Loss", series(rows, "train_loss"), series(rows, "test_loss"), "{:.3f}")
    _panel(right, "Accuracy", series(rows, "train_accuracy"), series(rows, "test_accuracy"), "{:.1%}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def series(rows: Sequence[Row], name: str) -> Series:
    """(epochs done, value) of one metric. A row within an epoch gets the share of it that its step says."""
    per_epoch = _steps_per_epoch(rows)
    return [(_position(row, per_epoch), float(row[name])) for row in rows if name in row]


def _position(row: Row, per_epoch: float | None) -> float:
    return float(row["step"]) / per_epoch if per_epoch and "step" in row else float(row.get("epoch", 0))


def _steps_per_epoch(rows: Sequence[Row]) -> float | None:
    """Steps of one epoch, from the last row that ends one (it has a test metric); None if no row tells."""
    ends = [
        row for row in rows if row.get("epoch") and row.get("step") and ("test_loss" in row or "test_accuracy" in row)
    ]
    return float(ends[-1]["step"]) / float(ends[-1]["epoch"]) if ends else None


def subtitle(rows: Sequence[Row], nodes: int | None, seconds: float | None) -> str:
    """The facts under the title, as far as they are given or the rows tell them."""
    accuracies = [row["test_accuracy"] for row in rows if "test_accuracy" in row]
    processes = next((int(row["world_size"]) for row in rows if "world_size" in row), None)
    times = [float(row["time"]) for row in rows if "time" in row]
    duration = seconds if seconds is not None else max(times) - min(times) if times else None
    facts = [
        f"{accuracies[-1]:.2%} test accuracy" if accuracies else None,
        _count(nodes, "node", "nodes") if nodes else _count(processes, "process", "processes"),
        _count(max((int(row.get("epoch", 0)) for row in rows), default=None), "epoch", "epochs"),
        _duration(duration),
    ]
    return "   ·   ".join(fact for fact in facts if fact)


def _count(number: int | None, one: str, many: str) -> str | None:
    return f"{number} {one if number == 1 else many}" if number else None


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _panel(axes: Axes, title: str, train: Series, test: Series, form: str) -> None:
    _frame(axes, title)
    if percent := form.endswith("%}"):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    if train:
        _train_line(axes, train)
    if test:
        axes.plot(
            *zip(*test, strict=True), color=TEST, linewidth=2, marker="o", markersize=4.5, clip_on=False, zorder=3
        )
    if not train and not test:
        return
    _limits(axes, smooth(train), test, percent=percent)
    ends = [
        (name, curve[-1], colour)
        for name, curve, colour in (("train", smooth(train), TRAIN), ("test", test, TEST))
        if curve
    ]
    _end_labels(axes, [(point, f"{name} {form.format(point[1])}", colour) for name, point, colour in ends])


def _train_line(axes: Axes, train: Series) -> None:
    mean = smooth(train)
    if mean != train:
        axes.plot(*zip(*train, strict=True), color=TRAIN, linewidth=0.9, alpha=0.35)
    axes.plot(*zip(*mean, strict=True), color=TRAIN, linewidth=2, solid_capstyle="round")


def smooth(curve: Series) -> Series:
    """The mean of a curve over a sliding twentieth of its length; a short curve as it is."""
    if len(curve) < SMOOTHED_FROM:
        return curve
    half = max(1, len(curve) // 40)
    windows = (curve[max(0, i - half) : i + half + 1] for i in range(len(curve)))
    return [(x, sum(y for _, y in window) / len(window)) for (x, _), window in zip(curve, windows, strict=True)]


def _limits(axes: Axes, train: Series, test: Series, percent: bool) -> None:
    """Scales that spend the height on what happens: losses over decades go on a logarithmic axis, and accuracies
    start under the lowest test result, so that the first steps of the training may lie below the panel.
    """
    values = [y for _, y in (*train, *test)]
    axes.set_xlim(0, max(1.0, *(x for x, _ in (*train, *test))))
    if percent:
        lowest = min(y for _, y in test or train)
        axes.set_ylim(max(0.0, math.floor(10 * lowest - 0.5) / 10), 1.0)
    elif min(values) > 0 and max(values) > DECADES_FROM * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{loss:g}"))
        axes.set_ylim(min(values) * 0.8, max(values) * 1.25)
    else:
        axes.set_ylim(0, max(values) * 1.05 or 1.0)


def _end_labels(axes: Axes, labels: list[tuple[tuple[float, float], str, str]]) -> None:
    """Write each curve's name and last value at its end, apart from each other where the curves end close together."""
    to_panel = axes.transData + axes.transAxes.inverted()
    placed = sorted((float(to_panel.transform(point)[1]), text, colour) for point, text, colour in labels)
    heights = [height for height, _, _ in placed]
    if len(heights) == 2 and (missing := LEAST_GAP - (heights[1] - heights[0])) > 0:
        heights = [heights[0] - missing / 2, heights[1] + missing / 2]
    for height, (_, text, colour) in zip(heights, placed, strict=True):
        axes.text(
            1.025, height, text, transform=axes.transAxes, color=colour, fontsize=10.5, weight="bold", va="center"
        )


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11.5, color=INK, pad=10)
    axes.set_xlabel("epoch", color=GREY, fontsize=9.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(colors=GREY, labelsize=9.5, length=0, pad=6)
    axes.grid(axis="y", color=RULE, linewidth=1)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#c9ced4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metrics", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--run", default="a run", help="its name, for the title")
    args = parser.parse_args()
    draw(read(args.metrics), args.png, args.run)


if __name__ == "__main__":
    main()
