"""Bicep's functions of arrays and objects. Keys of objects are case-insensitive."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, reduce
from typing import Any

from emulators.arm.string_functions import shown

Json = dict[str, Any]


def union(*values: Any) -> Any:
    """Return the union of arrays, without duplicates, or the deep merge of objects. Arrays inside objects are
    replaced, not merged."""
    if isinstance(values[0], dict):
        merged: Json = reduce(_merged, values)
        return merged
    return _distinct([item for value in values for item in value])


def _merged(one: Json, other: Json) -> Json:
    both = dict(one)
    for key, value in other.items():
        before = both.get(key)
        both[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in found):
            found.append(item)
    return found


def intersection(*values: Any) -> Any:
    first, *others = values
    if isinstance(first, dict):
        return {key: value for key, value in first.items() if all(equal(value, o.get(key)) for o in others)}
    return [item for item in _distinct(first) if all(any(equal(item, one) for one in other) for other in others)]


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal in Bicep: true does not equal 1, and strings are case-sensitive."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def contains(where: Any, what: Any) -> bool:
    if isinstance(where, dict):
        return str(what).lower() in {key.lower() for key in where}
    if isinstance(where, str):
        return shown(what) in where
    return any(equal(item, what) for item in where)


def concat(*values: Any) -> Any:
    if isinstance(values[0], list):
        return [item for value in values for item in value]
    return "".join(map(shown, values))


def first(values: Any) -> Any:
    return values[0] if values else "" if isinstance(values, str) else None


def last(values: Any) -> Any:
    return values[-1] if values else "" if isinstance(values, str) else None


def ordered(values: list[Any], before: Callable[[Any, Any], bool]) -> list[Any]:
    return sorted(values, key=cmp_to_key(lambda a, b: -1 if before(a, b) else 1 if before(b, a) else 0))


def group_by(values: list[Any], key: Callable[[Any], str]) -> Json:
    found: Json = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return found


def reduced(values: list[Any], start: Any, each: Callable[[Any, Any, int], Any]) -> Any:
    for index, value in enumerate(values):
        start = each(start, value, index)
    return start


def to_object(values: list[Any], key: Callable[[Any], str], value: Callable[[Any], Any] | None = None) -> Json:
    return {key(item): value(item) if value else item for item in values}


def items(value: Json) -> list[Json]:
    return [{"key": key, "value": value[key]} for key in keys(value)]


def keys(value: Json) -> list[str]:
    return sorted(value, key=lambda key: (key.lower(), key))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array": lambda value: value if isinstance(value, list) else [value],
    "concat": concat,
    "contains": contains,
    "empty": lambda value: value is None or len(value) == 0,
    "filter": lambda values, keep: [value for index, value in enumerate(values) if keep(value, index)],
    "first": first,
    "flatten": lambda values: [item for value in values for item in value],
    "groupBy": group_by,
    "intersection": intersection,
    "items": items,
    "join": lambda values, separator: separator.join(map(shown, values)),
    "last": last,
    "length": len,
    "map": lambda values, each: [each(value, index) for index, value in enumerate(values)],
    "mapValues": lambda value, each: {key: each(one) for key, one in value.items()},
    "objectKeys": keys,
    "range": lambda start, count: list(range(start, start + count)),
    "reduce": reduced,
    "shallowMerge": lambda values: {key: value for one in values for key, value in one.items()},
    "skip": lambda values, count: values[max(0, count) :],
    "sort": ordered,
    "take": lambda values, count: values[: max(0, count)],
    "toObject": to_object,
    "union": union,
}
