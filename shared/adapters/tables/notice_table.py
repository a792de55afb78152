"""Subscriptions and their deliveries, in Azure Table Storage.

partition        key                             row
subscription     <id>                            the subscription, with its address
<subscription>   e!<hash of the event's id>      the key of the event's delivery; makes the delivery unique
                 t!<inverted milliseconds>-...   the delivery, newest event first
"""

from __future__ import annotations

import hashlib
import logging
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, some_columns, to_row
from shared.adapters.tables.table import Table
from shared.kernel.errors import Changed
from shared.kernel.parsing import decode
from shared.kernel.versioned import Stored
from shared.notices.model import Delivery, DeliveryState, Subscription

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

log = logging.getLogger(__name__)

_BELIEVED_SECONDS = 10.0


class _Event(msgspec.Struct):
    """The id of a delivery's notice."""

    id: str


class TableNotices:
    _SUBSCRIPTIONS = "subscription"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "notices")
        self._nobody_until = 0.0  # monotonic time until which the process assumes that there is no subscription

    def add(self, subscription: Subscription) -> None:
        key = {"PartitionKey": self._SUBSCRIPTIONS, "RowKey": keys.token(subscription.id)}
        self._table.write(table.create(key | to_row(subscription)))
        self._nobody_until = 0.0

    def anyone(self) -> bool:
        if time.monotonic() < self._nobody_until:
            return False
        query_time = time.monotonic()
        has_subscriptions = any(self._table.query(self._SUBSCRIPTIONS, "", "\x7f", 1, ["RowKey"]))
        if not has_subscriptions:
            self._nobody_until = query_time + _BELIEVED_SECONDS
        return has_subscriptions

    def wants(self, kind: str) -> bool:
        return self.anyone() and any(kind in each.on for each in self.all())

    def pending(self, subscription: str, event: str) -> datetime | None:
        stored = self.delivery(subscription, event)
        return stored.value.notice.at if stored and stored.value.state is DeliveryState.PENDING else None

    def get(self, subscription: str) -> Subscription | None:
        row = self._table.get(self._SUBSCRIPTIONS, keys.token(subscription))
        return from_row(Subscription, row) if row else None

    def all(self) -> list[Subscription]:
        return list(readable(Subscription, self._table.query(self._SUBSCRIPTIONS, "", "\x7f")))

    def remove(self, subscription: str) -> bool:
        try:
            self._table.write(table.delete(self._SUBSCRIPTIONS, keys.token(subscription)))
        except Changed:
            return False
        return True

    def insert(self, delivery: Delivery) -> bool:
        partition, time_key = keys.token(delivery.subscription), _time_key(delivery)
        name = {"PartitionKey": partition, "RowKey": f"e!{_digest(delivery.notice.id)}", "time_key": time_key}
        row = {"PartitionKey": partition, "RowKey": f"t!{time_key}", **to_row(delivery)}
        try:
            self._table.write(table.create(name), table.create(row))
        except Changed:
            return False
        return True

    def delivery(self, subscription: str, event: str) -> Stored[Delivery] | None:
        partition = keys.token(subscription)
        name = self._table.get(partition, f"e!{_digest(event)}")
        row = self._table.get(partition, f"t!{name['time_key']}") if name else None
        return Stored(from_row(Delivery, row), table.etag(row)) if row else None

    def update(self, stored: Stored[Delivery], **changes: Any) -> Stored[Delivery]:
        before = stored.value
        key = {"PartitionKey": keys.token(before.subscription), "RowKey": f"t!{_time_key(before)}"}
        (etag,) = self._table.write(table.merge(key | some_columns(Delivery, changes), stored.etag))
        return Stored(replace(before, **changes), etag)

    def prune(self, before: datetime, limit: int) -> int:
        # Over all partitions, because nothing else names the partitions of deleted subscriptions.
        low, high = f"t!{keys.newest_first(before, '~')}", table.kind("t")[1]
        ask = table.Ask(
            "RowKey ge @low and RowKey lt @high", {"low": low, "high": high}, ["PartitionKey", "RowKey", "notice"]
        )
        rows = list(islice(self._table.all(ask), limit))
        for row in rows:
            self._forget(str(row["PartitionKey"]), str(row["RowKey"]), str(row.get("notice", "")))
        return len(rows)

    def _forget(self, partition: str, key: str, notice: str) -> None:
        """Delete a delivery and its uniqueness row. A delivery deleted by another call is skipped."""
        deletions = [table.delete(partition, key)]
        try:
            event = decode(notice, _Event).id
            deletions.append(table.delete(partition, f"e!{_digest(event)}"))
        except (msgspec.DecodeError, UnicodeError):
            log.warning("delivery %s of %s can't be read, and goes alone", key, partition)
        with suppress(Changed):
            self._table.write(*deletions)

    def newest(self, subscription: str, limit: int = 50) -> list[Delivery]:
        rows = self._table.query(keys.token(subscription), *table.kind("t"), min(limit, 1000))
        return list(readable(Delivery, islice(rows, limit)))


def _digest(event: str) -> str:
    return hashlib.sha256(event.encode()).hexdigest()


def _time_key(delivery: Delivery) -> str:
    return keys.newest_first(delivery.notice.at, _digest(delivery.notice.id)[:16])
