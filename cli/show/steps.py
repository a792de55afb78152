"""The steps of a pipeline as a list. Each step is indented further than its predecessors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType

from ..api import phases
from ..terminal_text import Text, one_line
from .tables import grid, state_text


def graph(steps: list[dict[str, Any]]) -> RenderableType:
    """Return each step with its index (the value for `logs --rank`), state, duration, and predecessors."""
    levels, table = levels_of(steps), grid()
    for place, step in enumerate(steps):
        table.add_row(
            Text(f"  {place}", "dim"),
            Text("  " * levels[step["step"]] + one_line(step["step"])),
            state_text(step),
            Text(_duration(step), "dim"),
            Text(one_line(f"after {', '.join(step['needs'])}") if step["needs"] else "", "dim"),
            Text(one_line(step["why"]), "dim"),
        )
    return Group(Text("Steps", "bold"), table)


def levels_of(steps: list[dict[str, Any]]) -> dict[str, int]:
    """Return, by step, the number of steps that must run one after another before the step."""
    levels: dict[str, int] = {}
    while len(levels) < len(steps):
        ready = [s for s in steps if s["step"] not in levels and all(name in levels for name in s["needs"])]
        for step in ready or steps:
            levels[step["step"]] = max((levels.get(name, -1) + 1 for name in step["needs"]), default=0)
    return levels


def _duration(step: dict[str, Any]) -> str:
    if not (step["began"] and step["ended"]):
        return ""
    return phases.duration(
        (datetime.fromisoformat(step["ended"]) - datetime.fromisoformat(step["began"])).total_seconds()
    )
