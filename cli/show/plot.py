"""Curves as text: a character cell holds two by four dots, drawn with Unicode's Braille patterns. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text

Point = tuple[float, float]
Curves = dict[str, Sequence[Point]]
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bit of the dot in row, column of a cell
BLANK = 0x2800
COLOURS = ("cyan", "red", "green", "yellow", "magenta", "blue")
_PART = re.compile(r"^(train|test|val|validation)[_/](?=.)")
# Metrics of speed and machine rather than of progress, from our trainers and from MLflow.
_OF_ITS_PACE = re.compile(
    r"^(epoch|learning_rate|lr|gradient_norm|world_size|system/.*|.*_(per_second|share|mib|utilization))$"
)
LEAST_WIDTH, HEIGHT = 24, 10  # cells


class Canvas:
    """A grid of `width` by `height` character cells. Coordinates run from (0, 0), lower left, to (1, 1), upper
    right."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells = [[0] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]

    def line(self, begin: Point, end: Point, style: str) -> None:
        """Draw a straight line."""
        columns, rows = 2 * self.width - 1, 4 * self.height - 1
        steps = max(1, math.ceil(max(abs(end[0] - begin[0]) * columns, abs(end[1] - begin[1]) * rows)))
        for step in range(steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(begin, end, strict=True))
            self._dot(round(x * columns), rows - round(y * rows), style)

    def _dot(self, column: int, row: int, style: str) -> None:
        if 0 <= column < 2 * self.width and 0 <= row < 4 * self.height:
            self._cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]
            self._styles[row // 4][column // 2] = style

    def rows(self) -> list[Text]:
        return [
            Text.assemble(*((chr(BLANK + bits), style) for bits, style in zip(cells, styles, strict=True)))
            for cells, styles in zip(self._cells, self._styles, strict=True)
        ]


def curves_of(series: dict[str, Any], names: Sequence[str]) -> Curves:
    """Return the curves of these metrics from the API's series, without metrics without points."""
    chosen = {name: rows for name, rows in series.items() if name in names and rows}
    return {name: [(float(step), float(value)) for step, value, *_ in rows] for name, rows in chosen.items()}


def plot(curves: Curves, title: str, width: int, axis: str = "step") -> RenderableType:
    """Draw these curves over the step, or another `axis`, in one picture, with the limits of both axes and the last
    values in a legend.
    """
    shown = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in curves.items()}
    points = [point for curve in shown.values() for point in curve]
    if not points:
        return Text(f"{title}: no finite value", "dim")
    if all(len(curve) < 2 for curve in shown.values()):  # a single point is not a curve
        return _legend(title, shown)
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = _limits([y for _, y in points])
    labels = [_number(high), _number((low + high) / 2), _number(low)]
    margin = max(map(len, labels))
    canvas = Canvas(max(LEAST_WIDTH, width - margin - 3), HEIGHT)
    for style, curve in zip(_colours(len(shown)), shown.values(), strict=True):
        placed = [((x - left) / (right - left or 1), (y - low) / (high - low)) for x, y in curve]
        for begin, end in pairwise(placed if len(placed) > 1 else placed * 2):
            canvas.line(begin, end, style)
    beside = {0: labels[0], HEIGHT // 2: labels[1], HEIGHT - 1: labels[2]}
    rows = [
        Text.assemble((f"{beside.get(i, ''):>{margin}} ", "dim"), ("┤" if i in beside else "│", "dim"), row)
        for i, row in enumerate(canvas.rows())
    ]
    ends = f"{_number(left)}{f'{axis} {_number(right)}':>{max(1, canvas.width - len(_number(left)))}}"
    below = [Text(f"{'':{margin}} └{'─' * canvas.width}", "dim"), Text(f"{'':{margin}}  {ends}", "dim")]
    return Group(_legend(title, shown), *rows, *below)


def _legend(title: str, curves: dict[str, list[Point]]) -> Text:
    legend = Text(title, "bold")
    for style, (name, curve) in zip(_colours(len(curves)), curves.items(), strict=True):
        if curve:
            legend.append(f"   ━ {name} {_number(curve[-1][1])}", style)
    return legend


def _limits(values: list[float]) -> tuple[float, float]:
    """Return the limits of the axis. A flat curve lies in the middle."""
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def panels(names: list[str]) -> dict[str, list[str]]:
    """Group metrics for one picture: names that differ only in a prefix, for example `train_` or `val/`."""
    by_kind: dict[str, list[str]] = {}
    for name in sorted(names):
        by_kind.setdefault(_PART.sub("", name), []).append(name)
    return by_kind


def telling(names: list[str]) -> list[str]:
    """Return the metrics about the training's progress, without metrics of speed or machine; every metric if no others
    remain.
    """
    return [name for name in names if not _OF_ITS_PACE.match(name)] or names
