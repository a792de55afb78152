"""A comparison of runs: a table of their differences, and their curves in one plot for each metric. Pure."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from .. import show
from ..api import phases
from ..terminal_text import Text, one_line
from . import costs, plot

WIDEST = 140
MOST_PICTURES = 4
NAMED = {"duration_seconds": "took", "dollars": "cost"}  # as `runs` calls them


def picture(answer: dict[str, Any], curves: dict[str, Any], metrics: list[str], width: int) -> RenderableType:
    """Return the answer of /api/compare as a table, followed by plots of the runs' curves."""
    names = short([run["run"] for run in answer["runs"]])
    table = Table(box=None, pad_edge=True, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("", *names):
        table.add_column(column, overflow="fold")
    for row in answer["different"]:
        cells = (Text(_cell(row["name"], value)) for value in row["values"])
        table.add_row(Text(NAMED.get(row["name"], row["name"]), "dim"), *cells)
    for row in _telling(answer["metrics"]):
        cells = (Text(_metric(row["name"], value), _style(row, at)) for at, value in enumerate(row["values"]))
        table.add_row(Text(row["name"], "dim"), *cells)
    same = [] if answer["different"] else [Text("  Only their results differ.", "dim")]
    return Group(table, *same, Text(), *_pictures(curves, names, metrics, width))


def short(names: list[str]) -> list[str]:
    """Truncate names to the part that distinguishes them. For trials of one sweep, that is the number: `t3`."""
    trials = [name.rpartition("-t") for name in names]
    if len({sweep for sweep, _, _ in trials}) == 1 and all(number.isdigit() for _, _, number in trials):
        return [f"t{number}" for _, _, number in trials]
    for length in range(4, 17, 4):
        cut = [name[: len(name) - 16 + length] for name in names]
        if len(set(cut)) == len(names):
            return cut
    return names


def _telling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = plot.telling([row["name"] for row in rows])
    return [row for row in rows if row["name"] in kept]


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "duration_seconds":
        return phases.duration(value)
    return costs.dollars(value) if name == "dollars" else one_line(show.runs.number(value))


def _metric(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2%}" if name.endswith("accuracy") else f"{value:.4g}"


def _style(row: dict[str, Any], at: int) -> str:
    return "green" if row["best"] == at else ""


def _pictures(curves: dict[str, Any], names: list[str], chosen: list[str], width: int) -> list[RenderableType]:
    recorded = sorted({metric for series in curves.values() for metric in series})
    shown = [m for m in recorded if m in chosen] or plot.telling(recorded)
    shown.sort(key=lambda metric: (metric.startswith(("train_", "train/")), metric))
    pictures: list[RenderableType] = []
    most = len(shown) if chosen else MOST_PICTURES
    for metric in shown[:most]:
        lines = {
            name: plot.curves_of(series, [metric]).get(metric, [])
            for name, series in zip(names, curves.values(), strict=True)
        }
        drawn = {name: points for name, points in lines.items() if points}
        if drawn:
            pictures += [plot.plot(drawn, metric, width), Text()]
    more = shown[most:]
    return [*pictures, *([Text(f"More, with --name: {', '.join(map(one_line, more))}", "dim")] if more else [])]
