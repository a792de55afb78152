"""msgspec's messages about values of a wrong type, as sentences: the field, the value, and the allowed values.

The forms of the messages are from msgspec's source (`_core.c`, `ms_error_with_path` and its callers).
"""

from __future__ import annotations

import re
from typing import Any

_KINDS = {
    "array": "a list", "bool": "true or false", "bytes": "text", "date": "a date", "datetime": "a date and time",
    "float": "a number", "int": "a whole number", "null": "null", "object": "a mapping", "str": "text",
}  # fmt: skip
_AT = re.compile(r"(?P<rule>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_WRONG_KIND = re.compile(r"Expected `([^`]*)`(?:, got `[^`]*`)?")
_LIMIT = re.compile(r"Expected `([^`]*)` (<=|>=|<|>) ([\d.e+-]+)")
_LENGTH = re.compile(r"Expected `([^`]*)` of length (<=|>=|==) (\d+)")
_MULTIPLE = re.compile(r"Expected `[^`]*` that's a multiple of ([\d.]+)")
_PATTERN = re.compile(r"Expected `str` matching regex '(.*)'")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "==": "exactly"}
_NOT_EMPTY = "text that is not empty"
_CHARACTERS = {  # by the part of a pattern that allows them
    "A-Za-z0-9_.-]": "letters, digits, dots, dashes and underscores",
    "A-Za-z0-9_-]": "letters, digits, dashes and underscores",
    "a-z0-9-]": "small letters, digits and dashes",
    r"\\S": _NOT_EMPTY,
}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def sentence(message: str, value: object, what: str) -> str:
    """Return the sentence for msgspec's `message` about `value`. `what` is the name of the value as a whole."""
    found = _AT.fullmatch(message)
    rule, path = (found["rule"], found["path"] or "") if found else (message, "")
    if found and found["key"] and (use := _rule(rule)):
        return f"A name in {_name(path, what)} is not allowed; use {use}."
    if missing := _MISSING.fullmatch(rule):
        return f"{_name(path, what)} has no {missing[1]}, which is required."
    if unknown := _UNKNOWN.fullmatch(rule):
        return f"{_name(path, what)} has the unknown field {unknown[1]!r}; leave it out, or correct its name."
    if use := _rule(rule):
        return f"{_name(path, what)} is {_shown(value, path)}; use {use}."
    return f"{_name(path, what)}: {rule.rstrip('.')}."


def _rule(rule: str) -> str:
    """Return the allowed values, '' for a message of another form."""
    if limit := _LIMIT.fullmatch(rule):
        return f"{_kind(limit[1])} of {_BOUNDS[limit[2]]} {float(limit[3]):.12g}"
    if rule == "Expected `str` of length >= 1":
        return _NOT_EMPTY
    if length := _LENGTH.fullmatch(rule):
        unit = "items" if length[1] == "array" else "fields" if length[1] == "object" else "characters"
        return f"{_kind(length[1])} of {_BOUNDS[length[2]]} {length[3]} {unit}"
    if multiple := _MULTIPLE.fullmatch(rule):
        return "a whole number" if float(multiple[1]) == 1 else f"a multiple of {float(multiple[1]):g}"
    if pattern := _PATTERN.fullmatch(rule):
        return next(
            (words for part, words in _CHARACTERS.items() if part in pattern[1]), f"text that matches {pattern[1]}"
        )
    wrong = _WRONG_KIND.fullmatch(rule)
    return _kind(wrong[1]) if wrong else ""


def _kind(kinds: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))


def _name(path: str, what: str) -> str:
    return path.removeprefix(".")[:200] or what


def _shown(value: Any, path: str) -> str:
    """Return the value at msgspec's path (`.jobs[0].name`; `[...]` is any key), cut to 60 characters."""
    for key, index in _STEP.findall(path.replace("[...]", ".?")):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return "of another kind"
    return (
        f"{value!r:.60}"
        if not isinstance(value, dict | list)
        else f"a {'mapping' if isinstance(value, dict) else 'list'}"
    )
