"""The language of a search by tags: `"key" = 'value' AND "key" > 'value' AND @container = 'name'`. Pure.

https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags#remarks
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
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
LONGEST = 4096
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
    """Parse an `x-ms-if-tags` condition. A condition is about one blob, so it has no container; unlike a search, it may
    use OR and <>.

    Raises ValueError as `parse` does.
    """
    _check_length(text)
    groups = list(_groups(text))
    if any(term.key == CONTAINER for terms in groups for term in terms):
        raise ValueError(f"{CONTAINER} is for searches")
    return Condition(tuple(tuple(terms) for terms in groups))


def parse(text: str) -> Query:
    """Parse a search. Raises ValueError with the position or the name that is wrong."""
    _check_length(text)
    found, *others = _groups(text)
    if others or any(term.operator == "<>" for term in found):
        raise _refused("OR and <> are for conditions")
    if unfit := [term.key for term in found if term.key != CONTAINER and not TAG_NAME.fullmatch(term.key)]:
        raise _refused(f"{unfit[0][:40]!r} is no name of a tag")
    containers = [term for term in found if term.key == CONTAINER]
    tags = tuple(term for term in found if term.key != CONTAINER)
    if any(term.operator != "=" for term in containers) or len(containers) > 1:
        raise _refused(f"{CONTAINER} may be said once, with =")
    if not 1 <= len(tags) <= MOST_TERMS:
        raise _refused(f"it needs 1 to {MOST_TERMS} tags, and has {len(tags)}")
    return Query(tags, containers[0].value if containers else "")


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise _refused(f"it has {len(text)} characters, and {LONGEST} are allowed")


def _groups(text: str) -> Iterator[list[Term]]:
    """Yield the groups of terms that OR separates; AND joins the terms of a group."""
    found, at = list[Term](), 0
    while True:
        match = TERM.match(text, at)
        if match is None:
            raise _refused(f"\"key\" = 'value' is expected at character {at + 1}")
        found.append(Term(match["key"] or match["quoted"] or "", match["operator"], match["value"]))
        if found[-1].key != CONTAINER and not TAG_VALUE.fullmatch(match["value"]):
            raise _refused(f"{match['value'][:40]!r} is no value of a tag")
        if match.end() == len(text):
            yield found
            return
        following = AND.match(text, match.end())
        if following is None and (following := OR.match(text, match.end())):
            yield found
            found = []
        if following is None:
            raise _refused(f"AND is expected at character {match.end() + 1}")
        at = following.end()


def _refused(why: str) -> ValueError:
    return ValueError(f"{why}. The operators are {' '.join(one for one in OPERATORS if one != '<>')} and AND.")
