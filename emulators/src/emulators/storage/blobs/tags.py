"""The index of blobs by tag. Each tag of a blob has its own row, so a search reads only the rows that it finds.

https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from emulators.storage.blobs.model import blob_of
from emulators.storage.blobs.tag_query import Query, Term

SCHEMA = """
CREATE TABLE IF NOT EXISTS blob_tags (
    key TEXT, value TEXT, container INTEGER, name TEXT, PRIMARY KEY (key, value, container, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tags_of_blob ON blob_tags (container, name, key, value);
"""

Start = tuple[int, str]  # a container's number and a name, the order of a search
Found = tuple[int, str, str, dict[str, str]]  # both, the container's name, and the blob's tags


class TagIndex:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, container: int, name: str, tags: Mapping[str, str]) -> None:
        """Replace the blob's tags. Must run in the transaction that writes the blob."""
        self._db.execute("DELETE FROM blob_tags WHERE container = ? AND name = ?", (container, name))
        rows = [(key, value, container, name) for key, value in tags.items()]
        self._db.executemany("INSERT INTO blob_tags VALUES (?, ?, ?, ?)", rows)

    def search(self, query: Query, start: Start, limit: int) -> list[Found]:
        """Return at most `limit` blobs that match, from `start` on."""
        first, *others = sorted(query.terms, key=lambda term: term.operator != "=")  # an equality is read in order
        values: list[object] = [first.key, first.value, *start]
        text = (
            "SELECT t.container, t.name, c.name, b.facts"  # noqa: S608
            " FROM blob_tags AS t CROSS JOIN containers AS c CROSS JOIN blobs AS b"
            f" WHERE t.key = ? AND t.value {first.operator} ? AND (t.container, t.name) >= (?, ?)"
            " AND c.id = t.container AND b.container = t.container AND b.name = t.name"
        )
        if query.container:
            text += " AND t.container = (SELECT id FROM containers WHERE name = ?)"
            values.append(query.container)
        for term in others:
            text += f" AND EXISTS ({_same_blob(term)})"
            values += [term.key, term.value]
        rows = self._db.execute(f"{text} ORDER BY t.container, t.name LIMIT ?", [*values, limit])
        return [(number, name, container, blob_of(facts).tags) for number, name, container, facts in rows]


def _same_blob(term: Term) -> str:
    return (
        "SELECT 1 FROM blob_tags AS o WHERE o.container = t.container AND o.name = t.name"  # noqa: S608
        f" AND o.key = ? AND o.value {term.operator} ?"  # one of tag_query.OPERATORS
    )
