"""The answer of /api/status on one screen."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from ..terminal_text import Text, one_line
from . import clusters, drops, runs
from .tables import titled_table


def status(answer: dict[str, Any]) -> RenderableType:
    """Return every part of /api/status. A part without rows is shown as `none`: no part is hidden."""
    return Group(
        *_missing(answer.get("checks") or {}),
        runs.many(answer["runs"], "newest first"),
        drops.many(answer["drops"], "open or rejected"),
        clusters.many(answer["clusters"]),
        titled_table("Queues", "", sorted(answer["queues"].items()), _queue_row, ["queue", "waiting", "poison"]),
        _poison(answer["poison"]),
    )


def _missing(checks: dict[str, str]) -> list[Text]:
    """Return a line for each service that does not answer: its content is unknown, not empty."""
    return [Text(one_line(f"{name} does not answer: {said}"), "red") for name, said in checks.items() if said != "ok"]


def _queue_row(item: tuple[str, dict[str, int]]) -> list[Text]:
    name, counts = item
    return [Text(name), Text(str(counts["messages"])), Text(str(counts["poison"]), "red" if counts["poison"] else "")]


def _poison(messages: dict[str, list[str]]) -> RenderableType:
    lines = [Text(f"  {queue}: {text[:500]}", "red") for queue, texts in messages.items() for text in texts]
    return Group(Text("Poison messages", "bold"), *(lines or [Text("  none", "dim")]))
