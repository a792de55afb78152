"""Bicep's functions of strings. As in ARM, searching ignores case and comparing does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

PLACE = re.compile(r"\{(\d+)(?:,(-?\d+))?(?::([^{}]*))?\}|\{\{|\}\}")
NUMBER = re.compile(r"([NDX])(\d*)|(0+)")


def shown(value: Any) -> str:
    """Format a value as a string: True, a number or compact JSON, and '' for null."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def upper(value: str) -> str:
    """Convert letter by letter, like .NET's invariant culture: the German ß has no single upper-case letter."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in value)


def lower(value: str) -> str:
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in value)


def formatted(template: str, *values: Any) -> str:
    """Format as .NET's composite format does, with alignment and, for numbers, the formats N, D, X and zeros."""

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        value = values[int(match[1])]
        text = numeric(int(value), match[3]) if match[3] else shown(value)
        width = int(match[2] or 0)
        return text.rjust(width) if width >= 0 else text.ljust(-width)

    return PLACE.sub(fill, template)


def numeric(value: int, form: str) -> str:
    match = NUMBER.fullmatch(form)
    if not match:
        raise ValueError(f"{form!r} is not a format that is taken here: N, D, X with a width, or zeros")
    digits = int(match[2] or (2 if match[1] == "N" else 0))
    if match[1] == "N":
        return f"{value:,.{digits}f}"
    return f"{value:0{digits}X}" if match[1] == "X" else f"{value:0{digits or len(match[3] or '')}d}"


def split(value: str, separators: str | list[str]) -> list[str]:
    some = [separators] if isinstance(separators, str) else separators
    return re.split("|".join(map(re.escape, some)), value)


def substring(value: str, start: int, length: int | None = None) -> str:
    if start + (length or 0) > len(value):
        raise ValueError(f"{value!r} has no {length} characters from {start}")
    return value[start:] if length is None else value[start : start + length]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "endsWith": lambda value, end: value.lower().endswith(end.lower()),
    "format": formatted,
    "indexOf": lambda value, what: value.lower().find(what.lower()),
    "lastIndexOf": lambda value, what: value.lower().rfind(what.lower()),
    "padLeft": lambda value, width, fill=" ": shown(value).rjust(width, fill),
    "replace": lambda value, old, new: value.replace(old, new),
    "split": split,
    "startsWith": lambda value, start: value.lower().startswith(start.lower()),
    "string": shown,
    "substring": substring,
    "toLower": lower,
    "toUpper": upper,
    "trim": lambda value: value.strip(),
}
