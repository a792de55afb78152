"""Tables of schedules and of their firings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from .tables import STYLES, clock, titled_table


def many(rows: list[dict[str, Any]]) -> RenderableType:
    return titled_table("Schedules", "", rows, _schedule_row, ["id", "when", "what", "by", "next", "last run"])


def instants(coming: dict[str, Any]) -> RenderableType:
    """Return the next firings of a schedule, and the reasons why a run could not start now."""
    lines = [Text(f"  {clock(at)}") for at in coming["next"]] or [Text("  when enough new files have come", "dim")]
    reasons = [Text(f"  not now: {reason['message']}", "yellow") for reason in coming["reasons"]]
    zone = f"  by this machine's clock ({datetime.now().astimezone():%Z})" if coming["next"] else ""
    return Group(Text.assemble(("Next", "bold"), (zone, "dim")), *lines, *reasons)


def firings(rows: list[dict[str, Any]]) -> RenderableType:
    return titled_table("Instants", "newest first", rows, _firing_row, ["at", "outcome", "run", "why"])


def _schedule_row(row: dict[str, Any]) -> list[Text]:
    request = row["request"]
    what = next((str(request[kind]) for kind in ("trainer", "template") if request.get(kind)), "a job")
    if data := request.get("data"):  # the data distinguishes schedules of one trainer
        what = f"{what} on {data}"
    when = f"{row['cron']} {row['timezone']}" if row["cron"] else f"{row['new_files']:,} new files in {row['route']}"
    following = _paused(row) if row["paused"] else clock(row["next_at"])
    return [*map(Text, (row["id"], when, one_line(what), one_line(row["owner"]), following, row["last_run"]))]


def _paused(row: dict[str, Any]) -> str:
    by = one_line(row.get("paused_by") or "")  # empty for a schedule of an older version
    return f"paused by {by}" if by else "paused"


def _firing_row(row: dict[str, Any]) -> list[Text]:
    style = STYLES.get(row["outcome"], "")
    return [Text(clock(row["at"]), "dim"), Text(row["outcome"], style), Text(row["run"]), Text(row["why"])]
