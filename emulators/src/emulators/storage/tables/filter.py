"""OData $filter: text is parsed to a tree, and the tree becomes ranges of keys and a test for the rest. No I/O.

    (PartitionKey eq 'run' and RowKey ge 't!') and not (state eq 'failed' or started lt datetime'2026-01-01T00:00:00Z')

https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""

from __future__ import annotations

import base64
import binascii
import operator
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from emulators.storage.common.errors import StorageError
from emulators.storage.common.rights import Terms
from emulators.storage.tables.entity import TYPE, ticks_of

Row = Mapping[str, Any]
Test = Callable[[Row], bool]

DEEPEST = 100  # nested parentheses and `not`
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<typed>(?:datetime|guid|binary|[xX])'[^']*')|(?P<bracket>[()])"
    r"|(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[lLdDfFmM]?)(?!\w)|(?P<word>[^\W\d]\w*))"
)


@dataclass(frozen=True)
class Literal:
    """A constant. Values of different kinds are never equal, less or greater. All numbers are of one kind."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Compare:
    name: str
    operator: str
    literal: Literal


@dataclass(frozen=True)
class Both:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    part: Node


Node = Compare | Both | Either | Not


@dataclass(frozen=True)
class Bounds:
    """A range of keys from `low` to `high`, with or without its ends. `high` None means no upper end."""

    low: str = ""
    above: bool = False
    high: str | None = None
    below: bool = False

    def narrowed(self, name: str, value: str) -> Bounds:
        """Return the part of the range whose keys satisfy the comparison `name` with `value`. `name` is any
        operator except ne."""
        bounds = self
        if name in ("eq", "ge", "gt") and (value, name == "gt") > (bounds.low, bounds.above):
            bounds = replace(bounds, low=value, above=name == "gt")
        if name in ("eq", "le", "lt") and (
            bounds.high is None or (value, name != "lt") < (bounds.high, not bounds.below)
        ):
            bounds = replace(bounds, high=value, below=name == "lt")
        return bounds


@dataclass(frozen=True)
class Plan:
    """The plan of a query: the ranges of partition and row keys to read, and the test for the entities in them.
    Every result lies in both ranges."""

    partition: Bounds = field(default_factory=Bounds)
    row: Bounds = field(default_factory=Bounds)
    test: Test | None = None
    names: frozenset[str] = frozenset()  # of the properties that `test` reads

    def within(self, terms: Terms) -> Plan:
        """Return the plan limited to the range of keys that a signature grants."""
        if terms.first is None and terms.last is None:
            return self
        partition, before = self.partition, self.test
        partition = partition.narrowed("ge", terms.first[0]) if terms.first else partition
        partition = partition.narrowed("le", terms.last[0]) if terms.last else partition

        def test(row: Row) -> bool:
            return terms.reaches(row["PartitionKey"], row["RowKey"]) and (before is None or before(row))

        return replace(self, partition=partition, test=test)


def plan(text: str) -> Plan:
    """Read a filter. Raises StorageError, 400 InvalidInput, with the position of an invalid part."""
    if not text.strip():
        return Plan()
    partition, row, rest = Bounds(), Bounds(), list[Node]()
    for part in _conjuncts(_Parser(text).parsed()):
        match part:
            case Compare("PartitionKey", sign, Literal("text", value)) if sign != "ne":
                partition = partition.narrowed(sign, value)
            case Compare("RowKey", sign, Literal("text", value)) if sign != "ne":
                row = row.narrowed(sign, value)
            case _:
                rest.append(part)
    return Plan(partition, row, tested(Both(tuple(rest))), _names(Both(tuple(rest)))) if rest else Plan(partition, row)


def tested(node: Node) -> Test:
    """Return a function that returns whether a stored row satisfies the condition."""
    match node:
        case Compare(name, sign, literal):
            return _comparison(name, OPERATORS[sign], literal)
        case Not(part):
            inner = tested(part)
            return lambda row: not inner(row)
        case Both(parts):
            tests = [tested(part) for part in parts]
            return lambda row: all(test(row) for test in tests)
        case Either(parts):
            tests = [tested(part) for part in parts]
            return lambda row: any(test(row) for test in tests)


def _comparison(name: str, compare: Callable[[Any, Any], bool], literal: Literal) -> Test:
    kind, constant, type_name = literal.kind, literal.value, name + TYPE

    def test(row: Row) -> bool:
        value = row.get(name)
        if value is None:
            return False
        if kind == "text" and type_name not in row:  # the most common type, on a short path
            return isinstance(value, str) and compare(value, constant)
        found = typed(row.get(type_name), value)
        return found.kind == kind and compare(found.value, constant)

    return test


def typed(type_name: str | None, value: Any) -> Literal:
    """Return a stored property as a comparable value."""
    match type_name, value:
        case None, bool():
            return Literal("boolean", value)
        case None, str():
            return Literal("text", value)
        case None | "Edm.Int64" | "Edm.Double", _:
            return Literal("number", int(value) if type_name == "Edm.Int64" else float(value))
        case "Edm.DateTime", _:
            return Literal("datetime", ticks_of(value))
        case "Edm.Guid", _:
            return Literal("guid", value)
    return Literal("binary", base64.b64decode(value))


def _names(node: Node) -> frozenset[str]:
    match node:
        case Compare(name):
            return frozenset({name})
        case Not(part):
            return _names(part)
    return frozenset().union(*map(_names, node.parts))


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, Both):
        return [inner for part in node.parts for inner in _conjuncts(part)]
    return [node]


class _Parser:
    """Recursive descent parser: either = both {or both}; both = one {and one}; one = not one | ( either ) |
    comparison."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parsed(self) -> Node:
        node = self._either()
        if self._next < len(self._tokens):
            raise self._error("the end")
        return node

    def _either(self) -> Node:
        return self._joined("or", self._both, Either)

    def _both(self) -> Node:
        return self._joined("and", self._one, Both)

    def _joined(self, word: str, part: Callable[[], Node], made: Callable[[tuple[Node, ...]], Node]) -> Node:
        parts = [part()]
        while self._accepts_token(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else made(tuple(parts))

    def _one(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"at most {DEEPEST} brackets inside each other")
        try:
            if self._accepts_token("not"):
                return Not(self._one())
            if self._accepts_token("("):
                node = self._either()
                if not self._accepts_token(")"):
                    raise self._error("a closing bracket")
                return node
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Node:
        left = self._operand()
        if (sign := self._peek()) not in OPERATORS:
            if isinstance(left, str):  # a boolean property alone
                return Compare(left, "eq", Literal("boolean", True))
            if left.kind == "boolean":  # `all` of nothing holds, and `any` of nothing does not
                return Both(()) if left.value else Either(())
            raise self._error(f"one of {', '.join(OPERATORS)}")
        self._next += 1
        right = self._operand()
        match left, right:
            case str(), Literal():
                return Compare(left, sign, right)
            case Literal(), str():
                return Compare(right, MIRRORED.get(sign, sign), left)
        raise self._error("a property on one side, a constant on the other")

    def _operand(self) -> str | Literal:
        kind, token = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
        if kind == "word" and token not in (*OPERATORS, "and", "or", "not"):
            self._next += 1
            truth = token.lower()
            return Literal("boolean", truth == "true") if truth in ("true", "false") else token
        if kind in ("text", "typed", "number"):
            self._next += 1
            try:
                return _literal(kind, token)
            except (ValueError, binascii.Error):
                self._next -= 1
                raise self._error("a valid constant") from None
        raise self._error("a property or a constant")

    def _peek(self) -> str:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else ""

    def _accepts_token(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._next += 1
        return True

    def _error(self, wanted: str) -> StorageError:
        found = self._peek() or "the end"
        return _invalid(f"expected {wanted}, found {found!r:.60} (token {self._next + 1})")


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _invalid(f"cannot read {text[position:][:40]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


def _literal(kind: str, token: str) -> Literal:
    if kind == "text":
        return Literal("text", token[1:-1].replace("''", "'"))
    if kind == "number":
        digits = token.rstrip("lLdDfFmM")
        return Literal("number", int(digits) if re.fullmatch(r"-?\d+", digits) else float(digits))
    name, _, quoted = token.partition("'")
    value = quoted[:-1]
    match name:
        case "datetime":
            return Literal("datetime", ticks_of(value))
        case "guid":
            return Literal("guid", str(uuid.UUID(value)))
    return Literal("binary", bytes.fromhex(value))


def _invalid(reason: str) -> StorageError:
    return StorageError(400, "InvalidInput", f"The query condition specified in the request is invalid: {reason}.")
