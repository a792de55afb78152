"""Tables of subscriptions and of sent notices."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from ..terminal_text import Text, one_line
from .tables import clock, state_text, titled_table


def subscriptions(rows: list[dict[str, Any]]) -> RenderableType:
    """Return a table of subscriptions: events, channels, addresses and owners."""
    columns = ["id", "on", "channel", "to", "only", "by", "since"]
    return titled_table("Subscriptions", "", rows, _subscription_row, columns)


def deliveries(rows: list[dict[str, Any]]) -> RenderableType:
    """Return a table of the delivery results of notices, newest first."""
    return titled_table(
        "Notices", "newest first", rows, _delivery_row, ["at", "kind", "state", "tries", "notice", "error"]
    )


def _subscription_row(row: dict[str, Any]) -> list[Text]:
    only = [f"{name} {row[name]}" for name in ("route", "experiment") if row[name]]
    words = (
        row["id"],
        ", ".join(row["on"]),
        row["channel"],
        one_line(row["to"]),
        ", ".join(only),
        one_line(row["owner"]),
    )
    return [*map(Text, words), Text(clock(row["created_at"]), "dim")]


def _delivery_row(row: dict[str, Any]) -> list[Text]:
    begin = Text(clock(row["at"]), "dim"), Text(row["kind"]), state_text(row), Text(str(row["tries"]))
    return [*begin, Text(row["title"]), Text(row["error"])]
