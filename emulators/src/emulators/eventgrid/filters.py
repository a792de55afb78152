"""The `filter` of an event subscription, with the operators of the 2025-02-15 API. Pure.

All conditions must hold, and a condition holds if one of its values matches. Strings are compared case-insensitively. A
key that is absent, null or of another type matches only the negative conditions (NumberNotIn, StringNotContains, ...).
A key is an attribute of the event (in any case) or a path in its data (`data.a.b`, case-sensitive).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from emulators.eventgrid.schema import Event

MAX_FILTERS = 25
MAX_VALUES = 25
MAX_CHARACTERS = 512
MISSING = object()

Test = Callable[[Any, Any], bool]  # (value in the event, value in the filter)


class BadFilter(ValueError):
    """A filter that Azure would refuse. The message has the filter and the reason."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_number, value))


@dataclass(frozen=True)
class Operator:
    """`test` compares one value of the event, of type `kind`, with one value of the filter, of type `operand`. A single
    operand is under `value`, a list of operands under `values`.
    """

    test: Test
    kind: Callable[[Any], bool]
    operand: Callable[[Any], bool]
    single: bool = False
    negative: bool = False


def _texts(test: Callable[[str, str], bool], negative: bool = False) -> Operator:
    return Operator(lambda a, b: test(a.lower(), b.lower()), _text, _text, negative=negative)


def _single(test: Test, kind: Callable[[Any], bool] = _number) -> Operator:
    return Operator(test, kind, kind, single=True)


def _within(a: float, bounds: Sequence[float]) -> bool:
    return bounds[0] <= a <= bounds[1]


OPERATORS: dict[str, Operator] = {
    "NumberIn": Operator(lambda a, b: bool(a == b), _number, _number),
    "NumberNotIn": Operator(lambda a, b: bool(a == b), _number, _number, negative=True),
    "NumberLessThan": _single(lambda a, b: bool(a < b)),
    "NumberLessThanOrEquals": _single(lambda a, b: bool(a <= b)),
    "NumberGreaterThan": _single(lambda a, b: bool(a > b)),
    "NumberGreaterThanOrEquals": _single(lambda a, b: bool(a >= b)),
    "NumberInRange": Operator(_within, _number, _range),
    "NumberNotInRange": Operator(_within, _number, _range, negative=True),
    "BoolEquals": _single(lambda a, b: a is b, _boolean),
    "StringIn": _texts(str.__eq__),
    "StringNotIn": _texts(str.__eq__, negative=True),
    "StringBeginsWith": _texts(str.startswith),
    "StringNotBeginsWith": _texts(str.startswith, negative=True),
    "StringEndsWith": _texts(str.endswith),
    "StringNotEndsWith": _texts(str.endswith, negative=True),
    "StringContains": _texts(str.__contains__),
    "StringNotContains": _texts(str.__contains__, negative=True),
}
NULL_OPERATORS = ("IsNullOrUndefined", "IsNotNull")


@dataclass(frozen=True)
class Condition:
    """An advanced filter."""

    operator: str
    key: str
    values: tuple[Any, ...] = ()

    def holds(self, event: Event, arrays: bool) -> bool:
        value = _lookup(event, self.key)
        if self.operator in NULL_OPERATORS:
            return (value is MISSING or value is None) == (self.operator == "IsNullOrUndefined")
        operator = OPERATORS[self.operator]
        candidates = value if arrays and isinstance(value, list) else [value]
        found = any(operator.test(c, v) for c in candidates if operator.kind(c) for v in self.values)
        return found != operator.negative


@dataclass(frozen=True)
class Filter:
    types: frozenset[str] = frozenset()
    begins: str = ""
    ends: str = ""
    case_sensitive: bool = False
    arrays: bool = False
    conditions: tuple[Condition, ...] = ()

    def may_match(self, event_type: str, subject: str) -> bool:
        """Return whether type and subject pass the filter. Only these are known before the event's data."""
        if self.types and event_type not in self.types:
            return False
        begins, ends = self.begins, self.ends
        if not self.case_sensitive:
            begins, ends, subject = begins.lower(), ends.lower(), subject.lower()
        return subject.startswith(begins) and subject.endswith(ends)

    def matches(self, event: Event) -> bool:
        return self.may_match(event.type, event.subject) and all(c.holds(event, self.arrays) for c in self.conditions)


def read(spec: dict[str, Any]) -> Filter:
    """Read a subscription's `filter` property. Raises BadFilter for a filter that Azure refuses."""
    types = frozenset(spec.get("includedEventTypes") or ())
    conditions = tuple(_condition(item) for item in spec.get("advancedFilters") or ())
    if len(conditions) > MAX_FILTERS or sum(len(c.values) for c in conditions) > MAX_VALUES:
        raise BadFilter(f"at most {MAX_FILTERS} advanced filters with {MAX_VALUES} values in all")
    return Filter(
        frozenset() if "All" in types else types,
        spec.get("subjectBeginsWith") or "",
        spec.get("subjectEndsWith") or "",
        bool(spec.get("isSubjectCaseSensitive")),
        bool(spec.get("enableAdvancedFilteringOnArrays")),
        conditions,
    )


def _condition(item: dict[str, Any]) -> Condition:
    name, key = item.get("operatorType", ""), item.get("key", "")
    if not key:
        raise BadFilter(f"an advanced filter needs a key: {item}")
    if name in NULL_OPERATORS:
        return Condition(name, key)
    if name not in OPERATORS:
        raise BadFilter(f"unknown operatorType {name!r}; choose one of {', '.join([*OPERATORS, *NULL_OPERATORS])}")
    return Condition(name, key, tuple(_operands(item, OPERATORS[name])))


def _operands(item: dict[str, Any], operator: Operator) -> list[Any]:
    name = "value" if operator.single else "values"
    if name not in item:
        raise BadFilter(f"{item['operatorType']} on {item['key']} needs {name!r}")
    operands = [item["value"]] if operator.single else list(item["values"])
    for operand in operands:
        if not operator.operand(operand):
            raise BadFilter(f"{item['operatorType']} on {item['key']} can't compare with {operand!r}")
        if isinstance(operand, str) and len(operand) > MAX_CHARACTERS:
            raise BadFilter(f"{item['operatorType']} on {item['key']}: a value is over {MAX_CHARACTERS} characters")
    return operands


def _lookup(event: Event, key: str) -> Any:
    head, _, path = key.partition(".")
    if head.lower() != "data":
        return _attribute(event, key)
    value = event.data
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def _attribute(event: Event, key: str) -> Any:
    attributes = {
        "id": event.id,
        "eventid": event.id,
        "topic": event.topic,
        "source": event.source,
        "subject": event.subject,
        "type": event.type,
        "eventtype": event.type,
        "dataversion": event.data_version,
        "eventtypeversion": event.data_version,
        **{name.lower(): value for name, value in event.extras.items()},
    }
    return attributes.get(key.lower(), MISSING)
