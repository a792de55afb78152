"""Schedules and their firings, in Azure Table Storage.

partition    key                        row
schedule     <id>                       the schedule
<schedule>   f!<inverted order>         a firing, newest first
"""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, some_columns, to_row
from shared.adapters.tables.table import Table
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.schedules.model import Firing, Schedule

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

log = logging.getLogger(__name__)

_LAST_ORDER = 10**14 - 1


class TableSchedules:
    _SCHEDULES = "schedule"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "schedules")

    def add(self, schedule: Schedule) -> None:
        self._table.write(table.create(self._key(schedule.id) | to_row(schedule)))

    def get(self, schedule: str) -> Stored[Schedule] | None:
        row = self._table.get(self._SCHEDULES, keys.token(schedule))
        return Stored(from_row(Schedule, row), table.etag(row)) if row else None

    def all(self) -> list[Schedule]:
        return list(readable(Schedule, self._table.query(self._SCHEDULES, "", "\x7f")))

    def update(self, stored: Stored[Schedule], **changes: Any) -> Stored[Schedule]:
        row = self._key(stored.value.id) | some_columns(Schedule, changes)
        (etag,) = self._table.write(table.merge(row, stored.etag))
        return Stored(replace(stored.value, **changes), etag)

    def remove(self, schedule: str) -> bool:
        try:
            self._table.write(table.delete(self._SCHEDULES, keys.token(schedule)))
        except Changed:
            return False
        return True

    def claim(self, firing: Firing) -> Firing:
        try:
            self._table.write(table.create(self._firing(firing)))
        except Changed:
            row = self._table.get(keys.token(firing.schedule), _order(firing))
            return from_row(Firing, row) if row else firing
        return firing

    def finish(self, firing: Firing) -> None:
        self._table.write(table.put(self._firing(firing)))

    def firings(self, schedule: str, limit: int = 50) -> list[Firing]:
        rows = self._table.query(keys.token(schedule), *table.kind("f"), min(limit, 1000))
        return list(readable(Firing, islice(rows, limit)))

    def _key(self, schedule: str) -> dict[str, str]:
        return {"PartitionKey": self._SCHEDULES, "RowKey": keys.token(schedule)}

    def _firing(self, firing: Firing) -> dict[str, Any]:
        return {"PartitionKey": keys.token(firing.schedule), "RowKey": _order(firing), **to_row(firing)}


def _order(firing: Firing) -> str:
    return f"f!{_LAST_ORDER - firing.order:014d}"
