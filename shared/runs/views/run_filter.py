"""Parse a condition on runs: `lr<0.1 and accuracy>0.9`, `state=failed or owner~ann`. Pure.

    condition   = all ("or" all)*
    all         = part ("and" part)*
    part        = "not" part | "(" condition ")" | name operator value
    operator    = "<=" | ">=" | "!=" | "==" | "=" | "<" | ">" | "~" (contains)
    value       = a number, a word, or text in quotes

A name is a field, a parameter, a metric (its best value; `accuracy` finds test_accuracy) or a tag of a run. A run
without a value of this name never matches, whatever the operator.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from shared.kernel.errors import Impossible
from shared.runs.views.summary import Value

Lookup = Callable[[str], Value | None]
Wanted = Callable[[Lookup], bool]

LONGEST = 1000  # characters
DEEPEST = 20  # brackets within brackets
_TOKEN = re.compile(
    r"""\s*(?:(?P<op><=|>=|!=|==|=|<|>|~)|(?P<bracket>[()])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<word>[^\s()<>=!~"']+))"""
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def names_in(text: str) -> list[str]:
    """The names of fields, parameters, metrics and tags in a valid condition."""
    tokens = _tokens(text)
    return [token.text for token, following in pairwise(tokens) if following.kind == "op"]


def condition(text: str) -> Wanted:
    """Parse a condition. Raises Impossible with the position of the error."""
    if len(text) > LONGEST:
        raise Impossible(f"The condition has {len(text)} characters, the limit is {LONGEST}.", "bad_where")
    parser = _Parser(text, _tokens(text))
    predicate = parser.condition()
    if parser.at < len(parser.tokens):
        raise parser.fault("expected and, or, or the end")
    return predicate


@dataclass(frozen=True)
class _Token:
    kind: str  # op, bracket, text or word
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if not match:
            raise Impossible(f"The condition can't be read at {text[at : at + 20]!r}.", "bad_where")
        kind = str(match.lastgroup)
        tokens.append(_Token("text" if kind in ("double", "single") else kind, match[kind], match.start(kind)))
        at = match.end()
    return tokens


@dataclass
class _Parser:
    text: str
    tokens: list[_Token]
    at: int = 0
    depth: int = field(default=0)

    def condition(self) -> Wanted:
        parts = [self._all()]
        while self._accept("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda lookup: any(part(lookup) for part in parts)

    def _all(self) -> Wanted:
        parts = [self._part()]
        while self._accept("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else lambda lookup: all(part(lookup) for part in parts)

    def _part(self) -> Wanted:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault("too many brackets")
        try:
            if self._accept("not"):
                inner = self._part()
                return lambda lookup: not inner(lookup)
            if self._accept("(", "bracket"):
                inner = self.condition()
                if not self._accept(")", "bracket"):
                    raise self.fault("expected a closing bracket")
                return inner
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Wanted:
        name = self._next(("word", "text"), "expected the name of a parameter, metric or field")
        sign = self._next(("op",), f"expected <, >, =, != or ~ behind {name!r}")
        value = self._next(("word", "text"), f"expected a value behind {name} {sign}")
        return lambda lookup: _holds(lookup(name), sign, value)

    def _accept(self, text: str, kind: str = "word") -> bool:
        token = self.at < len(self.tokens) and self.tokens[self.at]
        if not token or token.kind != kind or token.text.lower() != text:
            return False
        self.at += 1
        return True

    def _next(self, kinds: tuple[str, ...], expected: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind not in kinds:
            raise self.fault(expected)
        self.at += 1
        return self.tokens[self.at - 1].text

    def fault(self, expected: str) -> Impossible:
        rest = self.text[self.tokens[self.at].at :][:40] if self.at < len(self.tokens) else ""
        place = f"at {rest!r}" if rest else "at its end"
        return Impossible(
            f"The condition {self.text[:80]!r} can't be read {place}: {expected}. Such as: lr<0.1 and accuracy>0.9",
            "bad_where",
        )


def _holds(value: Value | None, sign: str, text: str) -> bool:
    if value is None:
        return False
    if sign == "~":
        return text.lower() in str(value).lower()
    number = _number(text)
    if isinstance(value, int | float) and number is not None:
        if sign in _COMPARE:
            return _COMPARE[sign](value, number)
        return (value == number) is (sign != "!=")
    if sign in _COMPARE:
        return False
    return (str(value).lower() == text.lower()) is (sign != "!=")


def _number(text: str) -> float | None:
    percent = text.endswith("%")
    try:
        return float(text.rstrip("%")) / (100 if percent else 1)
    except ValueError:
        return None
