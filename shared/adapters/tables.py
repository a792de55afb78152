"""Drops, runs, sweeps and assets in Azure Table Storage.

A record and what finds it lie in one partition, so that one transaction writes both and no crash can part them:

    table     partition   key                                   row
    drops     drop        d!<drop>                              the drop
                          o!<drop>                              a copy of it, unless it is sealed
    runs      run         t!<inverted milliseconds>-<name>      the run; the newest has the first key
                          n!<name>                              where the run's row is, for ever
                          u!<name>                              until it is settled
    sweeps    <cluster>   latest                                the latest decision
                          h!<inverted milliseconds>             the decisions that changed something
    assets    <kind>      <digest>                              the id in Azure ML

One partition takes some 2,000 writes a second; a run makes about ten in its life.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as with_
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters import keys, table
from shared.adapters.records import (
    RUN_COLUMNS,
    Row,
    decision_row,
    drop_row,
    row_decision,
    row_drop,
    row_run,
    run_columns,
    run_row,
)
from shared.adapters.table import RowMissing, Table
from shared.clusters.model import Decision
from shared.drops.model import Drop, DropKey, DropState
from shared.kernel.errors import Changed, NotFound
from shared.kernel.stored import Stored
from shared.runs.model import RUN_NAME, Run
from shared.runs.ports import RunFilter, RunPage

if TYPE_CHECKING:
    from azure.data.tables import TableEntity, TableServiceClient

_UNFINISHED = frozenset({DropState.OPEN, DropState.SEALING})
_UNSEALED = _UNFINISHED | {DropState.REJECTED}
_PAGE = 1000  # the most rows that the service gives in one answer
_REQUESTS = 4  # for one page of runs; the service searches up to 5 seconds in each


def _all(kind: str) -> tuple[str, str]:
    """The range of the keys that begin with `kind!`."""
    return f"{kind}!", f'{kind}"'


class TableDrops:
    _PARTITION = "drop"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "drops")

    def get(self, key: DropKey) -> Stored[Drop] | None:
        row = self._table.get(self._PARTITION, self._key(key))
        return _stored_drop(row) if row else None

    def insert(self, drop: Drop) -> Stored[Drop]:
        index = [table.put(self._row(drop, "o"))] if drop.state in _UNSEALED else []
        return Stored(drop, self._table.write(table.create(self._row(drop)), *index)[0])

    def replace(self, drop: Drop, etag: str) -> Stored[Drop]:
        update = table.replace(self._row(drop), etag)
        if drop.state in _UNSEALED:
            return Stored(drop, self._table.write(update, table.put(self._row(drop, "o")))[0])
        return Stored(drop, self._write_and_close(update, drop.key)[0])

    def delete(self, key: DropKey, etag: str) -> None:
        try:
            self._write_and_close(table.delete(self._PARTITION, self._key(key), etag), key)
        except RowMissing:
            return

    def open(self) -> Iterator[Drop]:
        return (drop for drop in self.unsealed() if drop.state in _UNFINISHED)

    def unsealed(self) -> Iterator[Drop]:
        for row in self._table.query(self._PARTITION, *_all("o")):
            yield row_drop(row)

    def codes(self, route: str) -> dict[str, str]:
        low, high = keys.route_range(route)
        rows = self._table.query(self._PARTITION, f"d!{low}", f"d!{high}", columns=["name", "code"])
        return {row["name"]: row["code"] for row in rows}

    def listed(self, route: str | None = None) -> Iterator[Drop]:
        low, high = keys.route_range(route) if route is not None else ("", "\x7f")  # above every character of a key
        for row in self._table.query(self._PARTITION, f"d!{low}", f"d!{high}"):
            yield row_drop(row)

    def _write_and_close(self, operation: table.Operation, key: DropKey) -> list[str]:
        """Do this to the drop's row and take the drop off the open ones, if it is among them."""
        try:
            return self._table.write(operation, table.delete(self._PARTITION, self._key(key, "o")))
        except RowMissing as exc:
            if exc.index == 0:
                raise
            return self._table.write(operation)

    def _key(self, key: DropKey, kind: str = "d") -> str:
        return f"{kind}!{keys.drop_key(key)}"

    def _row(self, drop: Drop, kind: str = "d") -> Row:
        return {"PartitionKey": self._PARTITION, "RowKey": self._key(drop.key, kind), **drop_row(drop)}


def _stored_drop(row: TableEntity) -> Stored[Drop]:
    return Stored(row_drop(row), _etag(row))


class TableRuns:
    _PARTITION = "run"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "runs")

    def insert(self, run: Run) -> bool:
        time_key = keys.newest_first(run.created_at, run.name)
        name = self._key("n", run.name) | {"time_key": time_key}
        row = self._key("t", time_key) | run_row(run)
        try:
            self._table.write(table.create(name), table.create(row), table.put(self._key("u", run.name)))
        except Changed:
            return False
        return True

    def get(self, name: str) -> Stored[Run]:
        # Any text may be asked for; only a run's name makes a valid key.
        found = self._table.get(self._PARTITION, f"n!{name}") if RUN_NAME.fullmatch(name) else None
        row = self._table.get(self._PARTITION, f"t!{found['time_key']}") if found else None
        if row is None:
            raise NotFound(f"There is no run {name[:80]!r}.")
        return Stored(row_run(row), _etag(row))

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        key = self._key("t", keys.newest_first(run.value.created_at, run.value.name))
        etags = self._table.write(table.merge(key | run_columns(changes), run.etag))
        return Stored(with_(run.value, **changes), etags[0])

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        low, high = _all("t")
        if before is not None:
            low = f"t!{keys.newest_first(before.created_at, before.name)}\x20"  # the next key after this one
        rows = self._table.query(self._PARTITION, low, high, min(limit, _PAGE))
        return [row_run(row) for row in islice(rows, limit)]

    def page(self, wanted: RunFilter, limit: int, token: str = "") -> RunPage:
        ask, rows = _ask(wanted), list[Row]()
        for _ in range(_REQUESTS):
            more, token = self._table.page(ask, min(limit, _PAGE) - len(rows), token)
            rows += more
            if not token or len(rows) >= min(limit, _PAGE):
                break
        return RunPage([row_run({**row, "request": "{}"}) for row in rows], token)

    def unsettled(self) -> Iterator[str]:
        for row in self._table.query(self._PARTITION, *_all("u")):
            yield row["RowKey"].removeprefix("u!")

    def settle(self, name: str) -> None:
        try:
            self._table.write(table.delete(self._PARTITION, f"u!{name}"))
        except RowMissing:
            return

    def _key(self, kind: str, rest: str) -> Row:
        return {"PartitionKey": self._PARTITION, "RowKey": f"{kind}!{rest}"}


def _ask(wanted: RunFilter) -> table.Ask:
    """The runs of a filter. Time is a range of keys; the other values are compared by the service as it reads rows."""
    low, high = _all("t")
    if wanted.since:
        high = f"t!{keys.newest_first(min(max(wanted.since, keys.EPOCH), keys.LAST))}~"  # ~ is beyond every name
    parameters = {"partition": "run", "low": low, "high": high}
    query = "PartitionKey eq @partition and RowKey ge @low and RowKey lt @high"
    for column, value in (("experiment", wanted.experiment), ("state", wanted.state), ("cluster", wanted.cluster)):
        if value:
            parameters[column] = value
            query += f" and {column} eq @{column}"
    return table.Ask(query, parameters, RUN_COLUMNS)


class TableSweepLog:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "sweeps")

    def record(self, decision: Decision) -> None:
        partition, last = keys.token(decision.cluster), self.latest(decision.cluster)
        row = {"PartitionKey": partition, **decision_row(decision)}
        writes = [table.put(row | {"RowKey": "latest"})]
        if last is None or (last.action, last.code) != (decision.action, decision.code):
            writes.append(table.put(row | {"RowKey": f"h!{keys.newest_first(decision.at)}"}))
        self._table.write(*writes)

    def latest(self, cluster: str) -> Decision | None:
        row = self._table.get(keys.token(cluster), "latest")
        return row_decision(row) if row else None

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        rows = self._table.query(keys.token(cluster), *_all("h"), min(limit, _PAGE))
        return [row_decision(row) for row in islice(rows, limit)]


class TableAssets:
    """Which content is registered with Azure ML under which id."""

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "assets")

    def get(self, kind: str, digest: str) -> str | None:
        """The id of what was registered, or None. A row may outlive its asset if someone deletes that."""
        row = self._table.get(kind, digest)
        return str(row["id"]) if row else None

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        """Remember the id. Twice is once."""
        self._table.write(table.put({"PartitionKey": kind, "RowKey": digest, "id": asset_id}))


def _etag(row: TableEntity) -> str:
    return str(row.metadata["etag"])
