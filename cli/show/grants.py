"""Tables of grants, and one grant in full."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from .costs import dollars
from .tables import clock, titled_table

HEADINGS = ["id", "for", "by", "until", "spent", "reserved", "left", "runs", "now"]


def many(rows: list[dict[str, Any]]) -> RenderableType:
    return titled_table("Grants", "newest first", rows, _row, HEADINGS)


def one(grant: dict[str, Any]) -> RenderableType:
    """Return the terms of a grant, its money, its runs in progress and its history."""
    lists = {name: ", ".join(map(one_line, grant[name])) or "none" for name in _LISTS}
    facts = {
        "for": one_line(grant["purpose"]),
        "by": one_line(grant["by"]) or "somebody with a key",
        "until": clock(grant["until"]),
        "over": one_line(grant["over"]) or "no",
        "budget": dollars(grant["budget"]),
        "spent": dollars(grant["spent"]),
        "reserved": f"{dollars(grant['reserved'])}, by runs in progress at worst",
        "left": dollars(grant["left"]),
        "runs": f"{grant['runs_used']} of {grant['runs']}; {grant['runs_now']} of {grant['at_once']} now",
        "then": f"{grant['then']} runs in progress when it is used up",
        "drops": f"names that begin with {grant['drops']}",
        **lists,
    }
    lines = [Text.assemble((f"{name:9}", "dim"), value) for name, value in facts.items()]
    runs = titled_table("In progress", "", grant["in_progress"], _run, ["run", "reserved", "spent", "ended"])
    deeds = titled_table("History", "oldest first", grant["history"], _deed, ["at", "by", "what"])
    return Group(Text(f"Grant {grant['id']}", "bold"), *lines, runs, deeds)


_LISTS = ("may", "routes", "trainers", "clusters", "models", "shares")


def _row(row: dict[str, Any]) -> list[Text]:
    money = (dollars(row[name]) for name in ("spent", "reserved", "left"))
    until = "revoked" if row["revoked_at"] else clock(row["until"])
    runs = f"{row['runs_used']}/{row['runs']}", f"{row['runs_now']}/{row['at_once']}"
    return [*map(Text, (row["id"], one_line(row["purpose"]), one_line(row["by"]), until, *money, *runs))]


def _run(row: dict[str, Any]) -> list[Text]:
    return [
        Text(row["run"]),
        Text(dollars(row["most"])),
        Text(dollars(row["spent"])),
        Text("yes" if row["ended"] else ""),
    ]


def _deed(row: dict[str, Any]) -> list[Text]:
    return [Text(clock(row["at"]), "dim"), Text(one_line(row["by"])), Text(one_line(row["what"]))]
