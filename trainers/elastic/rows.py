"""Rows of one kind of one run: the result of `Table.rows`. A write happens exactly once, even after a lost response."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from azure.core import MatchConditions
from azure.data.tables import TableClient, UpdateMode

from .errors import Conflict, Missing, TooBig
from .sender import Sender
from .values import KEY_CHARS, MAX_VALUE, SHOWN_KEY_BYTES, WRITERS_BYTES, key_of, key_text, pack, unpack

# The etag of no row: replacing this version is always a Conflict.
STALE = "W/\"datetime'1601-01-01T00%3A00%3A00.0000000Z'\""

K = TypeVar("K", str, bytes)
Key = str | bytes


class Version(NamedTuple):
    """One version of a row, which `replace` requires. `writers` shows whether a write with a lost response has
    happened."""

    etag: str
    writers: bytes


class Row(NamedTuple):
    value: bytes
    version: Version


class Rows:
    """The rows of one kind of one run; created by `Table.rows`. Threads may share the rows."""

    def __init__(self, table: Sender, partition: str, kind: str) -> None:
        self.table = table
        self._partition = partition
        self._prefix = f"{kind}."
        self._end = f"{kind}/"  # the first name after all names with the prefix

    @property
    def _client(self) -> TableClient:
        return self.table.client

    def get(self, key: Key, deadline: float) -> Row | None:
        """Return a row, or None for a missing row."""
        try:
            found = self.table.call(
                lambda **options: self._client.get_entity(self._partition, self._name(key), **options), deadline
            )
        except Missing:
            return None
        return Row(unpack(found), Version(found.metadata["etag"] or "", found.get("writers", b"")))

    def many(self, keys: Collection[K], deadline: float, values: bool = True) -> dict[K, bytes]:
        """Return the existing rows among these keys, with one request per 1,000 rows between the first key and the
        last.

        Keys that are requested together mostly differ in a number at the end, so few other rows lie between them.
        Without `values`, the values are left out and empty.
        """
        names = {self._name(key): key for key in keys}
        if not names:
            return {}
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{min(names)}' and RowKey le '{max(names)}'"
        rows = self.table.query(wanted, None if values else ["RowKey"], deadline)
        return {names[row["RowKey"]]: unpack(row) for row in rows if row["RowKey"] in names}

    def count(self, deadline: float) -> int:
        """Return the number of rows, with one request per 1,000."""
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{self._prefix}' and RowKey lt '{self._end}'"
        return sum(1 for _ in self.table.query(wanted, ["RowKey"], deadline))

    def keys(self, deadline: float) -> list[bytes]:
        """Return the keys, with one request per 1,000. A key too long for a row's name is cut to SHOWN_KEY_BYTES."""
        wanted = f"PartitionKey eq '{self._partition}' and RowKey ge '{self._prefix}' and RowKey lt '{self._end}'"
        rows = self.table.query(wanted, ["RowKey", "key"], deadline)
        return [row.get("key") or key_of(row["RowKey"].removeprefix(self._prefix)) for row in rows]

    def insert(self, key: Key, value: bytes, deadline: float) -> Version:
        """Insert a row. Raises Conflict for an existing row, or TooBig."""
        row = self._row(key, value, self.table.operation())
        with _sized(key, value):
            return self._write(key, row, lambda **options: self._client.create_entity(row, **options), deadline)

    def replace(self, key: Key, value: bytes, version: Version, deadline: float) -> Version:
        """Replace exactly this version of a row. Raises Conflict if the row has another version, Missing if it is
        gone, or TooBig."""
        row = self._row(key, value, _noted(version.writers, self.table.operation()))
        condition: dict[str, Any] = {"etag": version.etag, "match_condition": MatchConditions.IfNotModified}

        def request(**options: Any) -> Any:
            return self._client.update_entity(row, UpdateMode.REPLACE, **condition, **options)

        with _sized(key, value):
            return self._write(key, row, request, deadline)

    def put(self, key: Key, value: bytes, deadline: float, others: bytes = b"") -> None:
        """Insert or replace a row of any version. Raises TooBig. `others` is a further column of the row.

        A new row of over 512 KiB is inserted, not updated: Azurite counts the characters of an update including base64,
        and therefore accepts at most 768 KiB, but does not count those of an insert. Azure counts neither this way.
        """
        row = {**self._row(key, value, b""), **({"others": others} if others else {})}
        with _sized(key, value):
            if len(value) > 2**19:
                with suppress(Conflict):
                    self.table.call(lambda **options: self._client.create_entity(row, **options), deadline)
                    return
            self.table.call(lambda **options: self._client.upsert_entity(row, UpdateMode.REPLACE, **options), deadline)

    def delete(self, key: Key, deadline: float, version: Version | None = None) -> bool:
        """Delete a row, and return whether it existed. If a response was lost on the way, a missing row counts as
        having existed.

        With a version, delete exactly this version. Raises Conflict if the row has another version.
        """
        condition: dict[str, Any] = {}
        if version:
            condition = {"etag": version.etag, "match_condition": MatchConditions.IfNotModified}
        answers: list[int] = []
        tries = []

        def request(raw_response_hook: Callable[[Any], None], **options: Any) -> None:
            def hook(answer: Any) -> None:
                raw_response_hook(answer)
                answers.append(answer.http_response.status_code)

            tries.append(1)
            options |= {**condition, "raw_response_hook": hook}
            self._client.delete_entity(self._partition, self._name(key), **options)

        self.table.call(request, deadline)
        return answers[-1] != 404 or len(answers) < len(tries)  # the SDK swallows 404

    def _write(self, key: Key, row: Mapping[str, Any], request: Callable[..., Any], deadline: float) -> Version:
        operation: bytes = row["writers"][-16:]
        try:
            return Version(str(self.table.call(request, deadline)["etag"]), row["writers"])
        except (Conflict, Missing) as error:
            if not error.retried:
                raise
            # An earlier try may have succeeded, and may itself have changed the row.
            found = self.get(key, deadline)
            if found is None or operation not in _entries(found.version.writers):
                raise
            mine = found.version.writers.endswith(operation)
            return found.version if mine else Version(STALE, found.version.writers)

    def _row(self, key: Key, value: bytes, writers: bytes) -> dict[str, Any]:
        if len(value) > MAX_VALUE:
            raise TooBig(f"the value of {key!r} has {len(value):,} bytes; a row takes {MAX_VALUE:,}")
        name, raw = self._name(key), key.encode() if isinstance(key, str) else key
        shown = {"key": raw[:SHOWN_KEY_BYTES]} if "~~" in name else {}  # for people who read the table
        return {
            "PartitionKey": self._partition,
            "RowKey": name,
            "expires": self.table.now() + self.table.lifetime,
            "writers": writers,
            **shown,
            **pack(value),
        }

    def _name(self, key: Key) -> str:
        return self._prefix + key_text(key, KEY_CHARS - len(self._prefix))


@contextmanager
def _sized(key: Key, value: bytes) -> Iterator[None]:
    try:
        yield
    except TooBig as error:
        raise TooBig(f"the value of {key!r} has {len(value):,} bytes, and the service takes less: {error}") from error


def _entries(writers: bytes) -> list[bytes]:
    return [writers[at : at + 16] for at in range(0, len(writers), 16)]


def _noted(writers: bytes, operation: bytes) -> bytes:
    """Return the list with this operation at the end, in place of the same writer's previous operation; the oldest
    entries are dropped."""
    others = [entry for entry in _entries(writers) if entry[:8] != operation[:8]]
    return b"".join([*others, operation])[-WRITERS_BYTES:]
