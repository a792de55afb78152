"""Node counts of clusters, in Azure Table Storage.

partition          key             row
clusters           <cluster>       the name of a cluster that has samples
<cluster>!<day>    ISO 8601 time   the cluster's sample at that time

A period is read day by day, so a read costs only what the period holds, however many samples are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import iso, readable, to_row
from shared.adapters.tables.table import Ask, Table
from shared.clusters.samples import Sample, day_of

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_CLUSTERS = "clusters"  # no clash: a partition of samples has a ! in its name


class TableSamples:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "samples")
        self._cluster_names: set[str] = set()  # clusters that this process has written

    def record(self, sample: Sample) -> None:
        if sample.cluster not in self._cluster_names:
            name = {"PartitionKey": _CLUSTERS, "RowKey": keys.token(sample.cluster), "cluster": sample.cluster}
            self._table.write(table.put(name))
            self._cluster_names.add(sample.cluster)
        where = {"PartitionKey": _partition(sample.cluster, sample.at), "RowKey": iso(sample.at)}
        self._table.write(table.put({**where, **to_row(sample)}))

    def clusters(self) -> list[str]:
        return [str(row["cluster"]) for row in self._table.query(_CLUSTERS, " ", "~~")]

    def first_day(self, cluster: str) -> datetime | None:
        low, high = table.kind(keys.token(cluster))
        its_days = Ask("PartitionKey ge @low and PartitionKey lt @high", {"low": low, "high": high}, ["PartitionKey"])
        first = next(self._table.all(its_days, limit=1), None)
        return datetime.strptime(f"{first['PartitionKey'][-8:]}+0000", "%Y%m%d%z") if first else None

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        day = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        while day < until:
            yield from readable(Sample, self._table.query(_partition(cluster, day), iso(since), iso(until)))
            day += timedelta(days=1)


def _partition(cluster: str, at: datetime) -> str:
    return f"{keys.token(cluster)}!{day_of(at)}"
