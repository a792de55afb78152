"""A comparison of runs: a table of their differences, and their curves in one plot for each metric. Pure."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from .. import show
from ..api import phases
from ..terminal_text import Text, one_line
from . import costs, plot
from .tables import metric

WIDEST = 140
MOST_PICTURES = 4
NAMED = {"duration_seconds": "took", "dollars": "cost"}  # as `runs` calls them


def differences(answer: dict[str, Any]) -> RenderableType:
    """Return the answer of /api/compare as a table: the differences, then the best value of each metric."""
    names = short([run["run"] for run in answer["runs"]])
    table = Table(box=None, pad_edge=True, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("", *names):
        table.add_column(column, overflow="fold")
    for row in answer["different"]:
        cells = (Text(_cell(row["name"], value)) for value in row["values"])
        table.add_row(Text(NAMED.get(row["name"], row["name"]), "dim"), *cells)
    for row in _telling(answer["metrics"]):
        cells = (Text(_metric(row["name"], value), _style(row, at)) for at, value in enumerate(row["values"]))
        table.add_row(Text(f"best {row['name']}", "dim"), *cells)
    same = [] if answer["different"] else [Text("  Only their results differ.", "dim")]
    return Group(table, *same, Text())


def curves(runs: list[str], series: dict[str, Any], chosen: list[str], plots: bool, width: int) -> RenderableType:
    """Return one plot for each metric, with the curve of each run. `chosen`: these metrics; `plots`: the first
    MOST_PICTURES metrics. Without both, return only the names of metrics with curves.
    """
    recorded = sorted({metric for metrics in series.values() for metric in metrics})
    shown = [m for m in recorded if m in chosen] or plot.telling(recorded)
    shown.sort(key=lambda metric: (metric.startswith(("train_", "train/")), metric))
    most = len(shown) if chosen else MOST_PICTURES if plots else 0
    pictures: list[RenderableType] = []
    for name in shown[:most]:
        pictures += _picture(short(runs), series, name, width)
    more = ", ".join(map(one_line, shown[most:]))
    how = "More, with --name" if most else "Curves, with --plot or --name"
    return Group(*pictures, *([Text(f"{how}: {more}", "dim")] if more else []))


def _picture(names: list[str], series: dict[str, Any], metric: str, width: int) -> list[RenderableType]:
    lines = {
        name: plot.curves_of(metrics, [metric]).get(metric, [])
        for name, metrics in zip(names, series.values(), strict=True)
    }
    drawn = {name: points for name, points in lines.items() if points}
    return [plot.plot(drawn, metric, width), Text()] if drawn else []


def short(names: list[str]) -> list[str]:
    """Truncate names to their distinguishing part. For trials of one sweep, the number: `t3`."""
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
    return "-" if value is None else metric(name, value)


def _style(row: dict[str, Any], at: int) -> str:
    return "green" if row["best"] == at else ""
