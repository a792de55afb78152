"""Tables of used space, and of past and future deletions."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from .tables import clock, size_of, titled_table


def usage(used: dict[str, Any]) -> RenderableType:
    """Return the used space by kind, and the largest holders of space."""
    kinds = [(kind, size) for kind, size in used["kinds"].items()]
    total = sum(used["kinds"].values())
    note = (
        f"{size_of(total)} in all" if used["complete"] else f"{size_of(total)} counted so far; the rest was not counted"
    )
    return Group(
        titled_table("Space", note, kinds, lambda row: [Text(row[0]), Text(size_of(row[1]))], ["kind", "size"]),
        titled_table("Most of it", "", used["holders"], _holder_row, ["kind", "what", "size", "files"]),
    )


def removed(rows: list[dict[str, Any]]) -> RenderableType:
    return titled_table("Removed", "newest first", rows, _removal_row, ["asked", "what", "name", "by", "size", "why"])


def going(rows: list[dict[str, Any]]) -> RenderableType:
    def cells(row: dict[str, Any]) -> list[Text]:
        return [Text(clock(row["at"])), Text(row["what"]), Text(one_line(row["name"])), Text(row["why"])]

    return titled_table("Retention deletes", "within a week", rows, cells, ["at", "what", "name", "why"])


def _holder_row(row: dict[str, Any]) -> list[Text]:
    return [Text(row["kind"]), Text(one_line(row["name"])), Text(size_of(row["bytes"])), Text(f"{row['files']:,}")]


def _removal_row(row: dict[str, Any]) -> list[Text]:
    size = size_of(row["bytes"]) if row["done_at"] else "going"
    words = row["what"], one_line(row["name"]), one_line(row["by"]), size, row["why"]
    return [Text(clock(row["asked_at"]), "dim"), *map(Text, words)]
