"""Columns of a table, declared in the manner of JSON Schema, and the values that a column may have. Pure.

`columns` of a declaration is a list of names, or a mapping of names to schemas. A schema has only the KEYWORDS, as
defined in https://json-schema.org/draft/2020-12/json-schema-validation. A cell of a text file is converted first: the
words in MISSING are null for every type except string, and `true` and `false` are booleans.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

TYPES = ("integer", "number", "string", "boolean", "null")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
LENGTHS = ("minLength", "maxLength")
FORMATS: dict[str, Callable[[str], object]] = {"date": date.fromisoformat, "date-time": datetime.fromisoformat}
KEYWORDS = ("type", "enum", "pattern", "format", "description", *BOUNDS, *LENGTHS)
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # a part of what pandas reads as missing
LONGEST_PATTERN, LONGEST_VALUE = 200, 1000  # characters; a longer value does not match a pattern
SHOWN = 60
_WHOLE = re.compile(r"[+-]?\d{1,40}(\.0+)?")


def problem(declared: object) -> str:
    """Return the problem with the columns of a declaration, or ''."""
    if isinstance(declared, list):
        wrong = next((name for name in declared if not isinstance(name, str) or not name), None)
        return "" if wrong is None else f"columns has {str(wrong)[:SHOWN]!r}, which is not a name of a column"
    if not isinstance(declared, dict):
        return f"columns is {str(declared)[:SHOWN]!r}; it must be a list of names, or a mapping of names to schemas"
    return next((f"columns.{name}: {said}" for name, schema in declared.items() if (said := _problem(schema))), "")


def _problem(schema: object) -> str:
    if not isinstance(schema, dict):
        return f"{str(schema)[:SHOWN]!r} is not a schema; write a mapping such as {{type: integer, minimum: 0}}"
    if unknown := [str(key) for key in schema if key not in KEYWORDS]:
        return f"unknown keyword {unknown[0][:SHOWN]!r}; known keywords: {', '.join(KEYWORDS)}"
    kinds = _kinds(schema)
    if not set(kinds) <= set(TYPES):
        return f"type is {str(schema['type'])[:SHOWN]!r}; choose from {', '.join(TYPES)}"
    for key in (*BOUNDS, *LENGTHS):
        if key in schema and (isinstance(schema[key], bool) or not isinstance(schema[key], int | float)):
            return f"{key} is {str(schema[key])[:SHOWN]!r}; it must be a number"
    if "enum" in schema and (not isinstance(schema["enum"], list) or not schema["enum"]):
        return f"enum is {str(schema['enum'])[:SHOWN]!r}; it must be a list of values"
    if "format" in schema and schema["format"] not in FORMATS:
        return f"format is {str(schema['format'])[:SHOWN]!r}; choose from {', '.join(FORMATS)}"
    return _bad_pattern(schema["pattern"]) if "pattern" in schema else ""


def _bad_pattern(pattern: object) -> str:
    if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN:
        return f"pattern must be a regular expression of at most {LONGEST_PATTERN} characters"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"pattern is {pattern[:SHOWN]!r}, which is not a regular expression: {error}"
    return ""


def patterns(declared: object) -> Iterator[str]:
    """Yield the names of the columns whose schema has a pattern."""
    if isinstance(declared, dict):
        yield from (str(name) for name, schema in declared.items() if isinstance(schema, dict) and "pattern" in schema)


def columns_of(declared: object) -> dict[str, Column]:
    """Return the declared columns by name. A list of names allows any values."""
    if isinstance(declared, Mapping):
        return {str(name): Column(schema) for name, schema in declared.items()}
    return {str(name): Column({}) for name in (declared if isinstance(declared, list | tuple) else ())}


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", [])
    return tuple(map(str, kinds if isinstance(kinds, list) else [kinds]))


@dataclass(frozen=True)
class Column:
    """One column. `schema` is known to be valid."""

    schema: Mapping[str, Any]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        return _kinds(self.schema)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.schema["pattern"]) if "pattern" in self.schema else None

    @cached_property
    def _choices(self) -> frozenset[str]:
        return frozenset(map(_text, self.schema.get("enum", ())))

    def cell(self, text: str) -> str:
        """Return why the column can't have this cell of a text file, or ''."""
        return self.value(self._converted(text))

    def _converted(self, text: str) -> Any:
        stripped, kinds = text.strip(), self.kinds
        if stripped.lower() in MISSING and kinds and ("string" not in kinds or ("null" in kinds and not stripped)):
            return None
        if "boolean" in kinds and stripped.lower() in ("true", "false"):
            return stripped.lower() == "true"
        if {"integer", "number"} & set(kinds) or any(key in self.schema for key in BOUNDS):
            return _number(stripped, text)
        return text

    def value(self, value: Any) -> str:
        """Return why the column can't have this value, with the expected and the found value; '' if it can."""
        if value is None:
            return "" if not self.kinds or "null" in self.kinds else f"expected {self.words()}, found no value"
        good = self._has_type(value) and self._in_bounds(value) and self._is_chosen(value) and self._is_text(value)
        return "" if good else f"expected {self.words()}, found {str(value)[:SHOWN]!r}"

    def _has_type(self, value: Any) -> bool:
        kinds = self.kinds
        if not kinds:
            return True
        if isinstance(value, bool):
            return "boolean" in kinds
        if isinstance(value, int):
            return "integer" in kinds or "number" in kinds
        if isinstance(value, float):
            return ("number" in kinds and math.isfinite(value)) or ("integer" in kinds and value.is_integer())
        return "string" in kinds

    def _in_bounds(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return not (isinstance(value, str) and not self.kinds and any(key in self.schema for key in BOUNDS))
        low, high = self.schema.get("minimum", -math.inf), self.schema.get("maximum", math.inf)
        above, below = self.schema.get("exclusiveMinimum", -math.inf), self.schema.get("exclusiveMaximum", math.inf)
        return bool(low <= value <= high and above < value < below)

    def _is_chosen(self, value: Any) -> bool:
        return not self._choices or _text(value) in self._choices

    def _is_text(self, value: Any) -> bool:
        if not isinstance(value, str):
            return True
        if not self.schema.get("minLength", 0) <= len(value) <= self.schema.get("maxLength", math.inf):
            return False
        if self._pattern and (len(value) > LONGEST_VALUE or not self._pattern.search(value)):
            return False
        return "format" not in self.schema or _is_form(value, FORMATS[self.schema["format"]])

    def words(self) -> str:
        """Return a description of the allowed values: "integer, minimum 0, maximum 120"."""
        rest = [f"{key} {self.schema[key]}" for key in (*BOUNDS, *LENGTHS, "pattern", "format") if key in self.schema]
        choices = [f"one of {', '.join(sorted(self._choices))[:200]}"] if self._choices else []
        return ", ".join([*([" or ".join(self.kinds)] if self.kinds else []), *choices, *rest]) or "any value"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _number(stripped: str, text: str) -> Any:
    """Return the number that a cell holds, or the cell's text."""
    if _WHOLE.fullmatch(stripped):
        return int(stripped.partition(".")[0])
    try:
        return float(stripped) if len(stripped) <= 40 and "_" not in stripped else text
    except ValueError:
        return text


def _is_form(value: str, read: Callable[[str], object]) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True
