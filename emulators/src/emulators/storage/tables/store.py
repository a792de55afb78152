"""Tables and their entities, in one SQLite file. No HTTP here; the rules are those of Azure Table Storage.

An entity is found by table, PartitionKey and RowKey, and is stored as the JSON that an answer needs. Reading a range of
keys costs as much as its result, whatever else is in the table. Keys are ordered by code point.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulators.storage.common.database import Store, transaction
from emulators.storage.common.errors import StorageError, invalid_input
from emulators.storage.tables.entity import ENTITY_BYTES, TICKS, Json, entity_too_large, etag_of, size_of
from emulators.storage.tables.filter import Bounds, Plan

PURGED_AT_ONCE = 500

SCHEMA = """
CREATE TABLE IF NOT EXISTS tables (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE COLLATE NOCASE);
CREATE TABLE IF NOT EXISTS entities (
    tbl INTEGER, partition TEXT, row TEXT, ticks INTEGER, body TEXT, PRIMARY KEY (tbl, partition, row));
"""


@dataclass(frozen=True)
class Entity:
    """An entity as stored. `ticks` is its Timestamp, from which its etag is made; `body` is the JSON object of its
    other properties."""

    partition: str
    row: str
    ticks: int
    body: str

    @property
    def etag(self) -> str:
        return etag_of(self.ticks)

    def properties(self) -> Json:
        found: Json = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Write:
    """One change: insert, replace, merge or delete of one entity.

    `etag`: the etag that the entity must have, or `*` for any. None means that a missing entity is inserted; a delete
    never has None.
    """

    kind: str
    table: str
    partition: str
    row: str
    properties: Json
    etag: str | None = None


class Failed(StorageError):
    """Write number `index` of a transaction was refused, so no write was done."""

    def __init__(self, index: int, error: StorageError) -> None:
        super().__init__(error.status, error.code, f"{index}:{error.message}", error.details)
        self.index = index


class Tables(Store):
    """The tables of one account. Their names are case-insensitive."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, SCHEMA, clock)
        self._last = 0
        self._ids: dict[str, int] = {
            name.lower(): number for name, number in self._db.execute("SELECT name, id FROM tables")
        }

    # Tables

    def create(self, name: str) -> None:
        """Create a table. Raises StorageError, 409, if it exists."""
        if name.lower() in self._ids:
            raise StorageError(409, "TableAlreadyExists", "The table specified already exists.")
        self._ids[name.lower()] = self._db.execute("INSERT INTO tables (name) VALUES (?)", (name,)).lastrowid or 0

    def delete(self, name: str) -> None:
        """Delete a table. `purge` removes its entities from the file in steps."""
        if name.lower() not in self._ids:
            raise not_found()
        table = self._ids[name.lower()]
        with transaction(self._db):
            self._db.execute("DELETE FROM tables WHERE id = ?", (table,))
            self.settings.drop(f"policies {name.lower()}")
            self._dropped.add(table)
        del self._ids[name.lower()]

    def names(self, start: str = "") -> list[str]:
        """Return the names of all tables from `start` on, sorted."""
        found = self._db.execute("SELECT name FROM tables WHERE name >= ? ORDER BY name", (start,))
        return [name for (name,) in found]

    def check(self, name: str) -> None:
        """Raise StorageError, 404, if the table does not exist."""
        self._id(name)

    def named(self, name: str) -> str:
        """Return the name in the case in which the table was created. Raises StorageError, 404, if it does not
        exist."""
        row = self._db.execute("SELECT name FROM tables WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise not_found()
        return str(row[0])

    def policies(self, name: str) -> str:
        """Return the stored access policies as the XML that set them, or ''."""
        self._id(name)
        return self.settings.get(f"policies {name.lower()}")

    def set_policies(self, name: str, text: str) -> None:
        self._id(name)
        self.settings.put(f"policies {name.lower()}", text)

    def purge(self) -> bool:
        """Remove some entities of deleted tables. Returns whether there may be more."""
        text = "DELETE FROM entities WHERE rowid IN (SELECT rowid FROM entities WHERE tbl = ? LIMIT ?)"
        return self._dropped.purge(lambda table: self._db.execute(text, (table, PURGED_AT_ONCE)).rowcount)

    # Entities

    def get(self, table: str, partition: str, row: str) -> Entity:
        """Return the entity. Raises StorageError, 404, if the table or the entity does not exist."""
        found = self._find(self._id(table), partition, row)
        if found is None:
            raise not_found()
        return found

    def write(self, writes: Sequence[Write]) -> list[Entity]:
        """Perform all writes or none, and return the written entities. Raises Failed."""
        done = []
        with transaction(self._db):
            for index, write in enumerate(writes):
                try:
                    done.append(self._write(write))
                except StorageError as error:
                    raise Failed(index, error) from error
        return done

    def scan(self, table: str, plan: Plan, start: tuple[str, str] | None, limit: int) -> list[Entity]:
        """Return the entities in the plan's ranges of keys, in order, from the key `start` on."""
        where, values = ["tbl = ?"], list[Any]([self._id(table)])
        row = plan.row
        if start and plan.partition.low == plan.partition.high:
            row = row.narrowed("ge", start[1])  # so that the index search starts there
        elif start:
            where.append("(partition, row) >= (?, ?)")
            values.extend(start)
        for column, bounds in (("partition", plan.partition), ("row", row)):
            for condition, value in _conditions(column, bounds):
                where.append(condition)
                values.append(value)
        rows = self._db.execute(
            f"SELECT partition, row, ticks, body FROM entities WHERE {' AND '.join(where)} "  # noqa: S608 (constants)
            "ORDER BY partition, row LIMIT ?",
            (*values, limit),
        )
        return [Entity(*found) for found in rows.fetchall()]

    def _id(self, name: str) -> int:
        if name.lower() not in self._ids:
            raise StorageError(404, "TableNotFound", "The table specified does not exist.")
        return self._ids[name.lower()]

    def _find(self, table: int, partition: str, row: str) -> Entity | None:
        found = self._db.execute(
            "SELECT partition, row, ticks, body FROM entities WHERE tbl = ? AND partition = ? AND row = ?",
            (table, partition, row),
        ).fetchone()
        return Entity(*found) if found else None

    def _write(self, write: Write) -> Entity:
        table = self._id(write.table)
        found = self._find(table, write.partition, write.row)
        if write.kind == "insert":
            if found:
                raise StorageError(409, "EntityAlreadyExists", "The specified entity already exists.")
            return self._put(table, write, write.properties, None)
        if write.etag is not None and found is None:
            raise not_found()
        if found and write.etag not in (None, "*", found.etag):
            sentence = "The update condition specified in the request was not satisfied."
            raise StorageError(412, "UpdateConditionNotSatisfied", sentence)
        if write.kind == "delete":
            self._db.execute(
                "DELETE FROM entities WHERE tbl = ? AND partition = ? AND row = ?", (table, write.partition, write.row)
            )
            return Entity(write.partition, write.row, 0, "{}")
        return self._put(table, write, _merged(write, found) if write.kind == "merge" else write.properties, found)

    def _put(self, table: int, write: Write, properties: Json, old: Entity | None) -> Entity:
        ticks = self._ticks(old.ticks if old else 0)
        body = json.dumps(properties, ensure_ascii=False, separators=(",", ":"))
        try:
            self._db.execute(
                "INSERT INTO entities (tbl, partition, row, ticks, body) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET ticks = excluded.ticks, body = excluded.body",
                (table, write.partition, write.row, ticks, body),
            )
        except UnicodeEncodeError as error:
            raise invalid_input(f"a text is not valid Unicode: {error.reason}") from None
        return Entity(write.partition, write.row, ticks, body)

    def _ticks(self, old: int) -> int:
        """Return a timestamp that is later than all earlier ones of this process and than the entity's last one,
        even if the clock goes back."""
        self._last = max(int(self.clock() * TICKS), self._last + 1, old + 1)
        return self._last


def not_found() -> StorageError:
    return StorageError(404, "ResourceNotFound", "The specified resource does not exist.")


def _merged(write: Write, found: Entity | None) -> Json:
    """Return the old properties updated with the new ones. A new property also replaces the old one's type."""
    old = found.properties() if found else {}
    for name in write.properties:
        old.pop(f"{name}@odata.type", None)
    merged = old | write.properties
    if size_of(merged, write.partition, write.row) > ENTITY_BYTES:
        raise entity_too_large()
    return merged


def _conditions(column: str, bounds: Bounds) -> list[tuple[str, Any]]:
    if bounds.low == bounds.high and not bounds.above and not bounds.below:
        return [(f"{column} = ?", bounds.low)]
    found: list[tuple[str, Any]] = []
    if bounds.low or bounds.above:
        found.append((f"{column} {'>' if bounds.above else '>='} ?", bounds.low))
    if bounds.high is not None:
        found.append((f"{column} {'<' if bounds.below else '<='} ?", bounds.high))
    return found
