"""The row in which the nodes of an elastic run meet, in the form of trainers/elastic.

The partition has the name of the run. The row `rendezvous.state` holds a round as compressed JSON in the bytes v0, and
the newest writers in the bytes `writers` (trainers/elastic/protocol.py, backend.py and rows.py).
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import table
from shared.adapters.tables.table import Table
from shared.kernel.clock import Clock, SystemClock
from shared.kernel.compare_and_set import compare_and_set

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

ROW = "rendezvous.state"
NO_ROUND = {"number": 0, "team": [], "address": "", "port": 0}
EXPIRES = timedelta(days=7)  # as `expire_after` of trainers/elastic/handler.py


class TableRendezvous:
    """See shared.elastic.ports.Rendezvous."""

    def __init__(self, service: TableServiceClient, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._table = Table(service, "rendezvous")

    def close(self, run: str, why: str) -> None:
        compare_and_set(
            self._clock,
            f"The rendezvous of run {run}",
            lambda: self._table.get(run, ROW),
            partial(self._close, run, why),
        )

    def _close(self, run: str, why: str, row: Any) -> None:
        meeting = _read(row)
        if meeting.get("closed"):
            return
        value = zlib.compress(json.dumps({**meeting, "closed": why}).encode())
        writers = bytes(row.get("writers", b"")) if row else b""
        keys = {"PartitionKey": run, "RowKey": ROW, "expires": datetime.now(UTC) + EXPIRES}
        closed = {**keys, "writers": writers, "v0": value}
        self._table.write(table.replace(closed, table.etag(row)) if row else table.create(closed))


def _read(row: Any) -> dict[str, Any]:
    """Return the round in this row. A missing row, or a row unreadable to nodes, holds no round."""
    try:
        found = json.loads(zlib.decompress(bytes(row["v0"]))) if row else NO_ROUND
    except (KeyError, ValueError, TypeError, zlib.error):
        return NO_ROUND
    return found if isinstance(found, dict) else NO_ROUND
