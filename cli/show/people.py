"""Text about people's names: a name from Entra ID is followed by its object id; any other name is self-reported."""

from __future__ import annotations

from typing import Any

from ..terminal_text import one_line

CLAIM = "unverified"


def known(name: str, object_id: str) -> str:
    """Return `ann@example.org (0a1b...)`, or the name alone if there is no object id; '' for no name."""
    name, object_id = one_line(name), one_line(object_id)
    return f"{name} ({object_id})" if object_id else name


def owner(row: dict[str, Any]) -> str:
    """Return the owner of a run. A name without an object id is marked as self-reported."""
    name = known(row.get("owner") or "", row.get("owner_id") or "")
    if not name:
        return "nobody by name"
    return name if row.get("owner_id") else f"{name}, {CLAIM}"


def payer(line: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """Return the owner in a line of the cost report: the name, and the object id too if another line has the same
    name."""
    name, key = one_line(line.get("name") or ""), one_line(line["key"])
    if not name:
        return f"{key}, {CLAIM}" if any(other.get("name") == line["key"] != "" for other in lines) else key
    namesakes = [other for other in lines if line["name"] in (other.get("name"), other["key"])]
    return known(name, key) if len(namesakes) > 1 else name
