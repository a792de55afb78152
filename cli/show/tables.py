"""Parts for every table: columns, facts, states, times and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from ..api.phases import duration
from ..terminal_text import Text
from .columns import Columns

STYLES = {
    "open": "yellow",
    "sealed": "green",
    "rejected": "red",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "canceled": "magenta",
    "started": "green",
    "skipped": "yellow",
    "pending": "yellow",
    "delivered": "green",
    "gave_up": "red",
}


def titled_table(
    title: str, note: str, rows: Iterable[Any], cells: Callable[[Any], list[Text]], columns: list[str]
) -> RenderableType:
    rows = list(rows)
    heading = Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim"))
    if not rows:
        return Group(heading, Text("  none", "dim"), Text())
    return Group(heading, Columns(columns, [cells(row) for row in rows]), Text())


def grid() -> Table:
    """Return an empty table without lines and headings."""
    return Table.grid(padding=(0, 2))


def facts_table(rows: dict[str, Text]) -> RenderableType:
    table = grid()
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(f"  {name}", value)
    return table


def state_text(record: dict[str, Any]) -> Text:
    return Text(record["state"], STYLES.get(record["state"], ""))


def metric(name: str, value: float) -> str:
    """Format a metric's value: accuracies in percent, whole numbers as they are, others with four digits."""
    if name.endswith("accuracy"):
        return f"{value:.2%}"
    whole = abs(value) < 1e15 and value == int(value)
    return f"{value:,.0f}" if whole or 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def clock(moment: str | None) -> str:
    """Format a moment in local time, with the date if the moment is not today; '' for no moment."""
    if not moment:
        return ""
    at, today = datetime.fromisoformat(moment).astimezone(), datetime.now().astimezone().date()
    return f"{at:%H:%M:%S}" if at.date() == today else f"{at:%Y-%m-%d %H:%M}"


def begins(expected_at: str | None, after: Sequence[str], now: datetime) -> str:
    """Return the time until a waiting run will probably begin, in words, or the runs of unknown length before it; '' if
    neither is known."""
    if not expected_at:
        return f"after {after[0]}{f' and {len(after) - 1} more' if after[1:] else ''}" if after else ""
    seconds = (datetime.fromisoformat(expected_at) - now).total_seconds()
    return f"in about {duration(seconds)}" if seconds >= 1 else "any moment"


def counted(count: int, noun: str) -> str:
    """Format a number with its noun: `1 file`, `1,200 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def file_count(count: int) -> str:
    return counted(count, "file")


def size_of(count: float) -> str:
    """Format a number of bytes: `455.0 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
