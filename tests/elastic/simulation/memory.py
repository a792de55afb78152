"""A table in memory for backend.py: the interface of client.Table and rows.Rows without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from trainers.elastic.client import Conflict, Missing, Row, Version
from trainers.elastic.values import KEY_CHARS, key_text, pack, unpack


class Entity(dict[str, Any]):
    """A row as the SDK returns it."""

    def __init__(self, name: str, value: bytes, etag: str, at: datetime, others: bytes = b"") -> None:
        super().__init__(RowKey=name, writers=b"", others=others, **pack(value))
        self.metadata = {"etag": etag, "timestamp": at}


@dataclass
class MemoryTable:
    """A table with its own clock. `asked` is called before each request and after its answer."""

    asked: Callable[[str], Callable[[], None]] = lambda _what: lambda: None
    entities: dict[tuple[str, str], Entity] = field(default_factory=dict)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _versions: count[int] = field(default_factory=count)

    def rows(self, run: str, kind: str) -> MemoryRows:
        return MemoryRows(self, key_text(run), kind)

    def query(self, wanted: str, columns: list[str] | None, deadline: float) -> Iterator[Entity]:
        """Rows of a partition between two names: all that backend.py asks for."""
        words = wanted.split("'")
        answer = self.asked("query")
        found = [e for (p, name), e in sorted(self.entities.items()) if p == words[1] and words[3] <= name < words[5]]
        answer()
        return iter(found)

    def write(self, place: tuple[str, str], value: bytes, others: bytes = b"") -> Version:
        self.entities[place] = Entity(place[1], value, f"W/{next(self._versions)}", self.now(), others)
        return Version(self.entities[place].metadata["etag"], b"")


@dataclass(frozen=True)
class MemoryRows:
    """The rows of one kind of one run."""

    table: MemoryTable
    partition: str
    kind: str

    def get(self, key: str, deadline: float) -> Row | None:
        answer = self.table.asked("get")
        found = self.table.entities.get(self._place(key))
        answer()
        return Row(unpack(found), Version(found.metadata["etag"], b"")) if found else None

    def insert(self, key: str, value: bytes, deadline: float) -> Version:
        answer = self.table.asked("insert")
        if self._place(key) in self.table.entities:
            raise Conflict(key)
        version = self.table.write(self._place(key), value)
        answer()
        return version

    def replace(self, key: str, value: bytes, version: Version, deadline: float) -> Version:
        answer = self.table.asked("replace")
        self._check(key, version)
        made = self.table.write(self._place(key), value)
        answer()
        return made

    def put(self, key: str, value: bytes, deadline: float, others: bytes = b"") -> None:
        answer = self.table.asked("put")
        self.table.write(self._place(key), value, others)
        answer()

    def delete(self, key: str, deadline: float, version: Version | None = None) -> bool:
        answer = self.table.asked("delete")
        there = self._place(key) in self.table.entities
        if there and version:
            self._check(key, version)
        self.table.entities.pop(self._place(key), None)
        answer()
        return there

    def _check(self, key: str, version: Version) -> None:
        found = self.table.entities.get(self._place(key))
        if not found:
            raise Missing(key)
        if found.metadata["etag"] != version.etag:
            raise Conflict(key)

    def _place(self, key: str) -> tuple[str, str]:
        return self.partition, f"{self.kind}." + key_text(key, KEY_CHARS - len(self.kind) - 1)
