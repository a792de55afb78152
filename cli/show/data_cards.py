"""Data cards: the verdict of a check with its reasons, and bars of the classes."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from .tables import file_count

STYLES = {"refused": "red", "warned": "yellow", "fine": "green"}
BAR = 30  # characters of the longest bar


def check(said: dict[str, Any], title: str) -> RenderableType:
    """Return the verdict, the reasons, and the card."""
    lines: list[RenderableType] = [Text(f"{one_line(title)}: {said['verdict']}", STYLES.get(said["verdict"], "bold"))]
    for part, style in (("refusals", "red"), ("warnings", "yellow"), ("notes", "dim")):
        lines += [Text(f"  {one_line(sentence)}", style) for sentence in said[part]]
    return Group(*lines, card(said["card"]))


def card(facts: dict[str, Any]) -> RenderableType:
    """Return the counts by split and class as bars, and the other facts in one line each."""
    if not facts:
        return Text("Nothing was checked.", "dim")
    lines = [Text(f"{file_count(facts['files'])}, {facts['bytes']:,} bytes")]
    longest = max((count for classes in facts["splits"].values() for count in classes.values()), default=0)
    for split, classes in facts["splits"].items():
        lines.append(Text(f"{one_line(split)}: {facts['totals'][split]:,} {facts['unit']}", "bold"))
        width = max(map(len, classes), default=0)
        for name, count in classes.items():
            bar = "█" * max(1, round(BAR * count / longest)) if count else ""
            lines.append(Text(f"  {one_line(name):{width}} {count:>9,} {bar}"))
    return Group(*lines, *(Text(line, "dim") for line in _facts(facts)))


def _facts(facts: dict[str, Any]) -> list[str]:
    """Return the facts on sizes, pictures and duplicates, smallest / median / largest."""
    spreads = [
        f"{name}: {' / '.join(f'{value:,}' for value in facts[key])}"
        for name, key in (("bytes per file", "sizes"), ("width", "widths"), ("height", "heights"))
        if facts[key]
    ]
    modes = ", ".join(f"{one_line(mode)} {count:,}" for mode, count in facts["modes"].items())
    again = facts["duplicates"]
    same = f"equal files: {again['within']:,} within a split, {again['across']:,} in several" if again else ""
    return [line for line in (*spreads, modes, same, one_line(facts["read"])) if line]


def changes(between: dict[str, Any]) -> RenderableType:
    """Return the differences of two cards, one line each."""
    return Group(*(Text(f"  {one_line(sentence)}") for sentence in between["changes"]))
