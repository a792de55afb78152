"""Removals, each with its requester and time, in Azure Table Storage: one partition, newest first."""

from __future__ import annotations

import hashlib
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, to_row
from shared.adapters.tables.table import Table
from shared.removals.model import Removal, RemovalKind

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient


class TableRemovals:
    _PARTITION = "removal"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "removals")

    def put(self, removal: Removal) -> None:
        key = _key(removal.what, removal.name, removal.asked_at)
        self._table.write(table.put({"PartitionKey": self._PARTITION, "RowKey": key, **to_row(removal)}))

    def get(self, what: RemovalKind, name: str, asked_at: datetime) -> Removal | None:
        row = self._table.get(self._PARTITION, _key(what, name, asked_at))
        return from_row(Removal, row) if row else None

    def newest(self, limit: int = 100) -> list[Removal]:
        rows = self._table.query(self._PARTITION, "", "\x7f", min(limit, 1000))
        return list(readable(Removal, islice(rows, limit)))


def _key(what: RemovalKind, name: str, asked_at: datetime) -> str:
    return keys.newest_first(asked_at, hashlib.sha256(f"{what} {name}".encode()).hexdigest()[:32])
