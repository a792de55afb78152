"""The language of a search by tags: `"key" = 'value' AND "key" > 'value' AND @container = 'name'`. Pure.

https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags#remarks
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass

OPERATORS = {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
CONTAINER = "@container"
MOST_TERMS = 10
LONGEST = 4096
TERM = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]*)"|(?P<key>@?[A-Za-z_]\w*))\s*(?P<operator>[<>]=?|=)\s*'(?P<value>[^']*)'\s*""", re.ASCII
)
AND = re.compile(r"AND\b", re.IGNORECASE)


@dataclass(frozen=True)
class Term:
    """What one tag must be; values compare as texts do."""

    key: str
    operator: str
    value: str

    def holds(self, tags: Mapping[str, str]) -> bool:
        return self.key in tags and bool(OPERATORS[self.operator](tags[self.key], self.value))


@dataclass(frozen=True)
class Query:
    """All of the terms hold; `container` is the only one to look in, if there is one."""

    terms: tuple[Term, ...]
    container: str = ""

    def holds(self, tags: Mapping[str, str]) -> bool:
        return all(term.holds(tags) for term in self.terms)


def condition(text: str) -> Query:
    """What `x-ms-if-tags` says: of one blob, so without a container. Raises ValueError as `parse` does."""
    query = parse(text)
    if query.container:
        raise ValueError(f"{CONTAINER} is for searches")
    return query


def parse(text: str) -> Query:
    """Raises ValueError naming where it goes wrong."""
    if len(text) > LONGEST:
        raise _refused(f"it has {len(text)} characters, and {LONGEST} are allowed")
    found = list(_terms(text))
    containers = [term for term in found if term.key == CONTAINER]
    tags = tuple(term for term in found if term.key != CONTAINER)
    if any(term.operator != "=" for term in containers) or len(containers) > 1:
        raise _refused(f"{CONTAINER} may be said once, with =")
    if not 1 <= len(tags) <= MOST_TERMS:
        raise _refused(f"it needs 1 to {MOST_TERMS} tags, and has {len(tags)}")
    return Query(tags, containers[0].value if containers else "")


def _terms(text: str) -> list[Term]:
    found, at = [], 0
    while True:
        match = TERM.match(text, at)
        if match is None:
            raise _refused(f"\"key\" = 'value' is expected at character {at + 1}")
        found.append(Term(match["key"] or match["quoted"] or "", match["operator"], match["value"]))
        if match.end() == len(text):
            return found
        following = AND.match(text, match.end())
        if following is None:
            raise _refused(f"AND is expected at character {match.end() + 1}")
        at = following.end()


def _refused(why: str) -> ValueError:
    return ValueError(f"{why}. The operators are {' '.join(OPERATORS)} and AND.")
