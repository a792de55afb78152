"""Leases, in one partition of Azure Table Storage. The id of a lease begins with the time, so a period is a range of
keys.

key        row
l!<id>     the lease
o!<id>     a copy of the lease, until someone closes it
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shared.adapters.tables import table
from shared.adapters.tables.records import Row, from_row, readable, to_row
from shared.adapters.tables.table import RowMissing, Table
from shared.clusters.lease_model import Lease
from shared.kernel.errors import Changed, NotFound
from shared.kernel.versioned import Stored

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient


class TableLeases:
    _PARTITION = "lease"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "leases")

    def insert(self, lease: Lease) -> bool:
        try:
            self._table.write(table.create(self._row("l", lease)), table.put(self._row("o", lease)))
        except Changed:
            return False
        return True

    def get(self, lease_id: str) -> Stored[Lease]:
        row = self._table.get(self._PARTITION, f"l!{lease_id}")
        if row is None:
            raise NotFound(f"There is no lease {lease_id[:60]!r}.")
        return Stored(from_row(Lease, row), table.etag(row))

    def replace(self, lease: Lease, before: Stored[Lease]) -> Stored[Lease]:
        update = table.replace(self._row("l", lease), before.etag)
        return Stored(lease, self._table.write(update, table.put(self._row("o", lease)))[0])

    def open(self) -> list[Lease]:
        return list(readable(Lease, self._table.query(self._PARTITION, *table.kind("o"))))

    def close(self, lease_id: str) -> None:
        try:
            self._table.write(table.delete(self._PARTITION, f"o!{lease_id}"))
        except RowMissing:
            return

    def made_between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        low, high = (f"l!{at.astimezone(UTC):%Y%m%dT%H%M%S}" for at in (since, until))
        yield from readable(Lease, self._table.query(self._PARTITION, low, high))

    def _row(self, kind: str, lease: Lease) -> Row:
        return {"PartitionKey": self._PARTITION, "RowKey": f"{kind}!{lease.id}", **to_row(lease)}
