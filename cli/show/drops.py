"""Tables of drops: the list, one drop, the generations of a drop's data, and the difference between two
generations."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from .tables import clock, facts_table, file_count, state_text, titled_table


def many(rows: list[dict[str, Any]], note: str = "") -> RenderableType:
    return titled_table("Drops", note, rows, _drop_row, ["drop", "state", "files", "why"])


def one(drop: dict[str, Any]) -> RenderableType:
    """Return the facts about one drop, including the reason for a missing run."""
    facts = {
        "state": state_text(drop),
        "why": Text(drop.get("why") or ""),
        "run": Text(drop.get("run") or "none"),
        "generation": Text(str(drop["generation"])),
        "files": Text(f"{_files(drop):,}, {drop['bytes']:,} bytes"),
        "opened": Text(clock(drop["opened_at"])),
        "sealed": Text(clock(drop["sealed_at"])),
    }
    return Group(Text(one_line(drop["drop"]), "bold"), facts_table(facts))


def generations(drop_name: str, rows: list[dict[str, Any]]) -> RenderableType:
    """Return a table of the generations of a drop's data, newest first."""
    return titled_table(
        one_line(drop_name), "newest first", rows, _generation_row, ["gen", "closed", "files", "bytes", "run", "why"]
    )


def difference(between: dict[str, Any]) -> RenderableType:
    """Return the added, changed and removed files, one line each, marked with +, ~ and -."""
    lines: list[RenderableType] = [Text(f"{one_line(between['a'])} -> {one_line(between['b'])}", "bold")]
    for part, sign, style in (("added", "+", "green"), ("changed", "~", "yellow"), ("gone", "-", "red")):
        part_difference = between[part]
        lines += [
            Text(f"  {sign} {one_line(file['path'])}  {file['size']:,}", style) for file in part_difference["files"]
        ]
        if more := part_difference["count"] - len(part_difference["files"]):
            lines.append(Text(f"  {sign} and {more:,} more", style))
    counts = ", ".join(f"{between[part]['count']:,} {part}" for part in ("added", "changed", "gone"))
    return Group(*lines, Text(f"{counts}, {between['same']:,} the same", "dim"))


def files(data: dict[str, Any]) -> RenderableType:
    lines = [Text(f"{file['size']:>14,}  {one_line(file['path'])}") for file in data["files"]]
    return Group(*lines, Text(f"{file_count(data['count'])}, {data['bytes']:,} bytes", "dim"))


def _files(drop: dict[str, Any]) -> int:
    """Return the number of data files; of a drop that an earlier version sealed, the number of all blobs."""
    files, blobs = drop.get("files"), int(drop["blobs"])
    return blobs if files is None else int(files)


def _drop_row(drop: dict[str, Any]) -> list[Text]:
    return [
        Text(one_line(drop["drop"])),
        state_text(drop),
        Text(str(_files(drop))),
        Text(drop.get("why") or ""),
    ]


def _generation_row(row: dict[str, Any]) -> list[Text]:
    return [
        Text(str(row["number"])),
        Text(clock(row["sealed_at"]), "dim"),
        Text(f"{row['blobs']:,}"),
        Text(f"{row['bytes']:,}"),
        Text(row["run"]),
        Text(row["why"]),
    ]
