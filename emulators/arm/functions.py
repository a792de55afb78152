"""Bicep's functions, those that plain templates use. A hash here is stable, but not the one that Azure would give."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
NAMESPACE = uuid.UUID("11fb06fb-712d-4ddd-98c7-e71bbd588830")  # the one that ARM's own guid() uses


def unique_string(*parts: str) -> str:
    digest = hashlib.sha256("-".join(parts).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:13]


def guid(*parts: str) -> str:
    return str(uuid.uuid5(NAMESPACE, "-".join(parts)))


def union(*values: Any) -> Any:
    if all(isinstance(value, dict) for value in values):
        merged: Json = {}
        for value in values:
            merged |= value
        return merged
    return list(dict.fromkeys(item for value in values for item in value))


def concat(*values: Any) -> Any:
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    return [item for value in values for item in value]


def apply(values: list[Any], each: Callable[[Any], Any]) -> list[Any]:
    return [each(value) for value in values]


PURE: dict[str, Callable[..., Any]] = {
    "concat": concat,
    "contains": lambda where, what: what in where,
    "empty": lambda value: not value,
    "filter": lambda values, keep: [value for value in values if keep(value)],
    "guid": guid,
    "join": lambda values, separator: separator.join(map(str, values)),
    "length": len,
    "map": apply,
    "replace": lambda value, old, new: value.replace(old, new),
    "string": str,
    "toLower": str.lower,
    "toUpper": str.upper,
    "union": union,
    "uniqueString": unique_string,
}
