"""Decisions about clusters, in the table `sweeps` of Azure Table Storage.

partition   key                         row
<cluster>   latest                      the latest decision
            h!<inverted milliseconds>   the decisions that changed something
            look                        when the next check of the cluster was last claimed
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import iso, readable, to_row
from shared.adapters.tables.table import Table
from shared.clusters.model import Decision

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_PAGE = 1000  # the most rows that the service returns per answer


class TableDecisions:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "sweeps")
        self._last_looks: dict[str, datetime] = {}  # the latest known check of each cluster

    def record(self, decision: Decision, last: Decision | None) -> None:
        row = {"PartitionKey": keys.token(decision.cluster), **to_row(decision)}
        writes = [table.put(row | {"RowKey": "latest"})]
        if last is None or (last.action, last.code) != (decision.action, decision.code):
            writes.append(table.put(row | {"RowKey": f"h!{keys.newest_first(decision.at)}"}))
        self._table.write(*writes)

    def claim_check(self, cluster: str, now: datetime, seconds: float) -> bool:
        partition, since = keys.token(cluster), now - timedelta(seconds=seconds)
        if (last_look := self._last_looks.get(cluster)) and last_look > since:
            return False
        if row := self._table.get(partition, "look"):
            self._last_looks[cluster] = datetime.fromisoformat(str(row["at"]))
            if self._last_looks[cluster] > since:
                return False
        self._table.write(table.put({"PartitionKey": partition, "RowKey": "look", "at": iso(now)}))
        self._last_looks[cluster] = now
        return True

    def latest(self, cluster: str) -> Decision | None:
        row = self._table.get(keys.token(cluster), "latest")
        return next(readable(Decision, [row] if row else []), None)  # the next decision overwrites an unreadable row

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        rows = self._table.query(keys.token(cluster), *table.kind("h"), min(limit, _PAGE))
        return list(readable(Decision, islice(rows, limit)))
