"""The query language of a search by tags: `"key" = 'value' AND "key" > 'value' AND @container = 'name'`. Pure.

https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags#remarks
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
CONTAINER = "@container"
MOST_TERMS = 10
LONGEST, LONGEST_CONDITION = 4096, 32 * 1024
TAG_CHARACTERS = re.compile(r"[\w +\-./:=]*", re.ASCII)
TAG_NAME, TAG_VALUE = re.compile(r"[\w +\-./:=]{1,128}", re.ASCII), re.compile(r"[\w +\-./:=]{0,256}", re.ASCII)
TERM = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]*)"|(?P<key>@?[A-Za-z_]\w*))\s*(?P<operator><>|[<>]=?|=)\s*'(?P<value>[^']*)'\s*""",
    re.ASCII,
)
AND, OR = re.compile(r"AND\b", re.IGNORECASE), re.compile(r"\s*OR\b", re.IGNORECASE)


@dataclass(frozen=True)
class Term:
    """A comparison of one tag with a value. Values are compared as text."""

    key: str
    operator: str
    value: str

    def holds(self, tags: Mapping[str, str]) -> bool:
        return self.key in tags and bool(OPERATORS[self.operator](tags[self.key], self.value))


@dataclass(frozen=True)
class Query:
    """A search whose terms must all hold. `container` limits the search to one container; '' means all."""

    terms: tuple[Term, ...]
    container: str = ""

    def holds(self, tags: Mapping[str, str]) -> bool:
        return all(term.holds(tags) for term in self.terms)


@dataclass(frozen=True)
class Condition:
    """A condition that holds if all terms of one group hold."""

    any_of: tuple[tuple[Term, ...], ...]

    def holds(self, tags: Mapping[str, str]) -> bool:
        return any(all(term.holds(tags) for term in terms) for terms in self.any_of)


def condition(text: str) -> Condition:
    """Parse an `x-ms-if-tags` condition. A condition is about one blob, so it has no container. Unlike a search, a
    condition may use OR and <>.

    Raises ValueError as `parse` does.
    """
    _check_length(text, LONGEST_CONDITION)
    groups = list(_groups(text, _check_characters))
    if any(term.key == CONTAINER for terms in groups for term in terms):
        raise ValueError(f"{CONTAINER} is for searches")
    return Condition(tuple(tuple(terms) for terms in groups))


def parse(text: str) -> Query:
    """Parse a search. Raises ValueError with the position or the name of the error."""
    _check_length(text, LONGEST)
    found, *others = _groups(text, _check_term)
    if others or any(term.operator == "<>" for term in found):
        raise _refused("OR and <> are for conditions", 1)
    containers = [term for term in found if term.key == CONTAINER]
    tags = tuple(term for term in found if term.key != CONTAINER)
    if any(term.operator != "=" for term in containers) or len(containers) > 1:
        raise _refused(f"{CONTAINER} may be said once, with =", 1)
    if len(tags) > MOST_TERMS:
        raise ValueError(f"Error parsing query: there can be at most {MOST_TERMS} unique tags in a query")
    if not tags:
        raise _refused(f"it needs 1 to {MOST_TERMS} tags", 1)
    return Query(tags, containers[0].value if containers else "")


def _check_length(text: str, most: int) -> None:
    if len(text) > most:
        raise _refused(f"it has {len(text)} characters, and {most} are allowed", most + 1)


def _check_term(term: Term, at: int) -> None:
    """Raise ValueError, in Azure's words, for a name or value that no tag can have."""
    if term.key == CONTAINER:
        return
    if not 1 <= len(term.key) <= 128:
        raise _refused("tag must be between 1 and 128 characters in length", at)
    if len(term.value) > 256:
        raise _refused("tag value must be between 0 and 256 characters in length", at)
    _check_characters(term, at)


def _check_characters(term: Term, at: int) -> None:
    """Raise ValueError for a character that no name or value of a tag can have. In a condition, only the characters
    are checked: a name that is too long is a tag that the blob lacks (Azurite's tests/blob/apis/blob.test.ts)."""
    if term.key.startswith("@") and term.key != CONTAINER:
        raise _refused(f"unsupported parameter {term.key[:40]!r}", at)
    for text in (term.key.removeprefix(CONTAINER), term.value):
        if not TAG_CHARACTERS.fullmatch(text):
            raise _refused(f"{text[:40]!r} has a character that is not permitted in tag name or value", at)


def _groups(text: str, check: Callable[[Term, int], None]) -> Iterator[list[Term]]:
    """Yield the groups of terms that OR separates; AND joins the terms of a group."""
    found, at = list[Term](), 0
    while True:
        match = TERM.match(text, at)
        if match is None:
            raise _refused("\"key\" = 'value' is expected", at + 1)
        found.append(Term(match["key"] or match["quoted"] or "", match["operator"], match["value"]))
        check(found[-1], at + 1)
        if match.end() == len(text):
            yield found
            return
        following = AND.match(text, match.end())
        if following is None and (following := OR.match(text, match.end())):
            yield found
            found = []
        if following is None:
            raise _refused("AND is expected", match.end() + 1)
        at = following.end()


def _refused(why: str, at: int) -> ValueError:
    operators = " ".join(one for one in OPERATORS if one != "<>")
    return ValueError(
        f"Error parsing query at or near character position {at}: {why}. The operators are {operators} and AND."
    )
