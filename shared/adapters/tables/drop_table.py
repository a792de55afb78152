"""The drops in Azure Table Storage, in one partition, so that one transaction writes a drop and its index rows.

key          row
d!<drop>     the drop
o!<drop>     a copy of the drop while it is open or sealing
r!<drop>     a copy of the drop while it is rejected
g!<drop>!<inverted number>   a generation of the drop; the newest has the first key
c!<name>     the position of a walk over all drops
s!<route>!<milliseconds>-<generation>-<name>   how many files a closing added, in the order of the closings
l!<drop>     a single-file drop that became a run
l!<route>!   marks that all older single-file drops of this route have their l! rows
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import Row, column_names, from_row, readable, to_row
from shared.adapters.tables.table import RowMissing, Table
from shared.drops.model import Drop, DropState, Generation, generation_of, ran_as_single_file
from shared.drops.ports import AlreadyAdded
from shared.kernel.clock import SystemClock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Changed
from shared.kernel.versioned import Stored

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_BATCH = 100  # rows per transaction
_MET = 10_000  # drops cached as having a record, 2 MiB
_LAST_GENERATION = 10**8 - 1
_DIGITS = 14  # digits of the milliseconds since 1970
_LISTED = ["RowKey", "route", "name", *column_names(Drop, skip=("key", "request"))]  # the columns that a list reads
_COPIES = {DropState.OPEN: "o", DropState.SEALING: "o", DropState.REJECTED: "r"}


class TableDrops:
    _PARTITION = "drop"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "drops")
        self._opening: dict[DropKey, Future[Stored[Drop]]] = {}
        self._met: dict[DropKey, None] = {}
        self._lock = threading.Lock()

    def is_new(self, key: DropKey) -> bool:
        return key not in self._met

    def get(self, key: DropKey) -> Stored[Drop] | None:
        row = self._table.get(self._PARTITION, self._key(key))
        self._meet(key)
        return Stored(_drop(row), table.etag(row)) if row else None

    def insert(self, drop: Drop) -> Stored[Drop]:
        """Insert the drop. Of concurrent uploads, only one pays for a transaction; the others share its result."""
        mine = Future[Stored[Drop]]()
        with self._lock:
            first = self._opening.setdefault(drop.key, mine)
        if first is not mine:
            try:
                opened = first.result()
            except Exception as exc:
                raise Changed(f"Drop {drop.key} was tried to be opened at the same moment.") from exc
            raise AlreadyAdded(opened)
        try:
            mine.set_result(Stored(drop, self._table.write(table.create(self._row(drop)), *self._copies(drop))[0]))
        except BaseException as exc:
            mine.set_exception(exc)
            raise
        finally:
            self._meet(drop.key)
            with self._lock:
                del self._opening[drop.key]
        return mine.result()

    def _meet(self, key: DropKey) -> None:
        with self._lock:
            if len(self._met) >= _MET:
                self._met.clear()
            self._met[key] = None

    def replace(self, drop: Drop, before: Stored[Drop]) -> Stored[Drop]:
        update, more = table.replace(self._row(drop), before.etag), [*self._copies(drop), *_closing(drop, before.value)]
        return Stored(drop, self._write(update, *more, leaves=before.value, unless=drop.state))

    def delete(self, before: Stored[Drop]) -> None:
        deletion = table.delete(self._PARTITION, self._key(before.value.key), before.etag)
        try:
            self._write(deletion, leaves=before.value)
        except RowMissing:
            return

    def generations(self, key: DropKey, limit: int = 1000) -> list[Generation]:
        rows = self._table.query(self._PARTITION, *table.kind(self._key(key, "g")), limit)
        return list(readable(Generation, islice(rows, limit)))

    def generation(self, key: DropKey, number: int) -> Generation | None:
        row = self._table.get(self._PARTITION, self._generation_key(key, number))
        return from_row(Generation, row) if row else None

    def forget(self, before: Stored[Drop]) -> None:
        stored = self.get(before.value.key)
        if stored and stored.etag != before.etag:
            raise Changed(f"Drop {before.value.key} changed before it was deleted.")
        low, high = table.kind(self._key(before.value.key, "g"))
        while rows := list(islice(self._table.query(self._PARTITION, low, high, _BATCH, ["RowKey"]), _BATCH)):
            self._table.write(*(table.delete(self._PARTITION, str(row["RowKey"])) for row in rows))
        if ran_as_single_file(before.value):
            self.uncount_single_file(before.value.key)
        self.delete(before)

    def open(self) -> Iterator[Drop]:
        yield from self._drops(*table.kind("o"))

    def rejected(self, limit: int) -> list[Drop]:
        return list(islice(self._drops(*table.kind("r"), limit), limit))

    def codes(self, route: str, first: str, last: str) -> dict[str, str]:
        low, high = (f"d!{keys.drop_key(DropKey(route, name))}" for name in (first, last))
        rows = self._table.query(self._PARTITION, low, f"{high}\x20", columns=["name", "code"])
        return {str(row["name"]): str(row.get("code", "")) for row in rows}

    def listed(self, route: str | None = None, after: DropKey | None = None, limit: int = 1000) -> list[Drop]:
        low, high = (
            keys.route_range(route) if route is not None else ("", "\x7f")
        )  # sorts after every character of a key
        low = f"d!{keys.drop_key(after)}\x20" if after else f"d!{low}"
        return list(islice(self._drops(low, f"d!{high}", limit, _LISTED), limit))

    def added(self, route: str, since: datetime, until: datetime) -> int:
        low, high = (f"{_closings(route)}{_milliseconds(at)}" for at in (since, until))
        return sum(int(row["files"]) for row in self._table.query(self._PARTITION, low, high, columns=["files"]))

    def count_single_file(self, key: DropKey, limit: int) -> bool:
        mark = _mark(Drop(key, DropState.OPEN, "", keys.EPOCH))

        def count_one(count: int) -> bool:
            counted = self._table.get(self._PARTITION, str(mark["RowKey"]))
            if counted or count >= limit:
                return counted is not None
            low, _ = keys.route_range(key.route)
            route = self._table.get(self._PARTITION, f"l!{low}")
            if route is None or self.single_files(key.route, limit) != count:
                raise Changed(f"Another single file of route {key.route} was counted just now.")
            row = {"PartitionKey": self._PARTITION, "RowKey": f"l!{low}"}
            self._table.write(table.replace(row, table.etag(route)), table.put(mark))
            return True

        what = f"The count of route {key.route}'s single files"
        return compare_and_set(SystemClock(), what, lambda: self.single_files(key.route, limit), count_one)

    def uncount_single_file(self, key: DropKey) -> None:
        with suppress(RowMissing):
            self._table.write(table.delete(self._PARTITION, self._key(key, "l")))

    def single_files(self, route: str, limit: int) -> int:
        low, high = (f"l!{end}" for end in keys.route_range(route))
        row_keys = [str(row["RowKey"]) for row in islice(self._keys(low, high, limit + 1), limit + 1)]
        if low not in row_keys:  # the marker row, once written, sorts first
            self._find_single_files(route)
            row_keys = [low, *(str(row["RowKey"]) for row in islice(self._keys(f"{low}\x20", high, limit), limit))]
        return len(row_keys) - 1

    def _keys(self, low: str, high: str, page: int) -> Iterator[Row]:
        return self._table.query(self._PARTITION, low, high, min(page, 1000), ["RowKey"])

    def _find_single_files(self, route: str) -> None:
        """Write the l! rows of the route's single-file drops that predate these rows. This walk happens once per
        route.
        """
        after: DropKey | None = None
        while page := self.listed(route, after):
            for drop in page:
                if ran_as_single_file(drop):
                    self._table.write(table.put(_mark(drop)))
            after = page[-1].key
        low, _ = keys.route_range(route)
        self._table.write(table.put({"PartitionKey": self._PARTITION, "RowKey": f"l!{low}"}))

    def cursors(self, walks: Iterable[str]) -> dict[str, str]:
        row_keys = {walk: f"c!{keys.token(walk)}" for walk in walks}
        if not row_keys:
            return {}
        low, high = min(row_keys.values()), f"{max(row_keys.values())}\x20"
        places = {str(row["RowKey"]): str(row.get("at", "")) for row in self._table.query(self._PARTITION, low, high)}
        return {walk: places.get(row_key, "") for walk, row_key in row_keys.items()}

    def move_cursor(self, walk: str, at: str) -> None:
        self._table.write(table.put({"PartitionKey": self._PARTITION, "RowKey": f"c!{keys.token(walk)}", "at": at}))

    def _drops(self, low: str, high: str, page: int | None = None, columns: list[str] | None = None) -> Iterator[Drop]:
        """Yield the drops of a range of keys. An unreadable drop is shown as broken."""
        for row in self._table.query(self._PARTITION, low, high, page and min(page, 1000), columns):
            try:
                yield _drop(row)
            except BadInput as exc:
                yield _broken(row, exc)

    def _write(self, *operations: table.Operation, leaves: Drop, unless: DropState | None = None) -> str:
        """Make these writes, and delete the copy of the drop's previous state. A drop of an older version may have no
        copy.
        """
        copy = _COPIES.get(leaves.state)
        if copy is None or (unless and _COPIES.get(unless) == copy):
            return self._table.write(*operations)[0]
        try:
            return self._table.write(*operations, table.delete(self._PARTITION, self._key(leaves.key, copy)))[0]
        except RowMissing as exc:
            if exc.index < len(operations):
                raise
            return self._table.write(*operations)[0]

    def _copies(self, drop: Drop) -> list[table.Operation]:
        kind = _COPIES.get(drop.state)
        copies = [table.put(self._row(drop, kind))] if kind else []
        if drop.state is DropState.SEALING:
            key = {"PartitionKey": self._PARTITION, "RowKey": self._generation_key(drop.key, drop.generation)}
            copies.append(table.put(key | to_row(generation_of(drop))))
        return copies

    def _generation_key(self, key: DropKey, number: int) -> str:
        return f"{self._key(key, 'g')}!{_LAST_GENERATION - number:08d}"

    def _key(self, key: DropKey, kind: str = "d") -> str:
        return f"{kind}!{keys.drop_key(key)}"

    def _row(self, drop: Drop, kind: str = "d") -> Row:
        key = {"PartitionKey": self._PARTITION, "RowKey": self._key(drop.key, kind)}
        return {**key, "route": drop.key.route, "name": drop.key.name, **to_row(drop, skip=("key",))}


def _closing(drop: Drop, before: Drop) -> Iterator[table.Operation]:
    """Yield the row with the number of files that this closing adds, for counts."""
    if drop.state is not DropState.SEALING or before.state is DropState.SEALING:
        return
    if (files := drop.blobs - before.blobs) and drop.sealed_at:
        at = f"{_milliseconds(drop.sealed_at)}-{drop.generation}-{keys.token(drop.key.name)}"
        row = {"PartitionKey": TableDrops._PARTITION, "RowKey": f"{_closings(drop.key.route)}{at}"}
        yield table.put(row | {"files": files})
    if ran_as_single_file(drop):
        yield table.put(_mark(drop))


def _mark(drop: Drop) -> Row:
    return {"PartitionKey": TableDrops._PARTITION, "RowKey": f"l!{keys.drop_key(drop.key)}"}


def _closings(route: str) -> str:
    return f"s!{keys.token(route)}!"


def _milliseconds(at: datetime) -> str:
    return f"{(at - keys.EPOCH) // timedelta(milliseconds=1):0{_DIGITS}d}"


def _drop(row: Row) -> Drop:
    return from_row(Drop, row, key=DropKey(str(row.get("route", "")), str(row.get("name", ""))))


def _broken(row: Row, exc: BadInput) -> Drop:
    key = DropKey(str(row.get("route", "?")), str(row.get("name", row.get("RowKey", "?"))))
    why = f"Its record is broken. {exc}"
    return Drop(key, DropState.BROKEN, "", keys.EPOCH, code="broken", why=why)
