"""The runs in Azure Table Storage, in one partition, so that one transaction writes a run and its index rows.

    key                                        row
    t!<inverted milliseconds>-<name>           the run; the newest has the first key
    n!<name>                                   the key of the run's row, forever
    h!<hour>                                   an hour that may have unfinished runs created in it
    i!<field>!<value>!<time key as above>      a copy of the run for lists, by experiment, state, cluster, owner and tag

One partition accepts some 2,000 row writes a second. A run is written about ten times in its life, each time with at
least its four copies: some thirty runs a second.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables import run_index as index
from shared.adapters.tables.recent_rows import RecentRows
from shared.adapters.tables.records import Row, changed_columns, from_row, iso
from shared.adapters.tables.table import RowMissing, Table, after_row
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadInput, Changed, Impossible, NotFound
from shared.kernel.versioned import Stored
from shared.runs.features import mended
from shared.runs.model import LIVE, Run, RunState
from shared.runs.names import RUN_NAME, hour_of, start_of_hour
from shared.runs.ports import RunChanges, RunFields, RunFilter, RunPage

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_PAGE = 1000  # the most rows that the service returns per answer
_REQUESTS = 4  # per page of a filter; the page may then be short, with a token
_KEYS_KNOWN = 10_000  # runs whose row keys are cached, 2 MiB
_READERS = 8  # rows of a filter's page that are read concurrently
_MILLISECOND = timedelta(milliseconds=1)
_OVERLAP = timedelta(seconds=1)  # concurrent writes may become visible in a different order than their times
_NO_REQUEST = JobSpec()  # lists leave the requests out
_TIME = "Timestamp"  # the service's own column: the time of a row's last write


class TableRuns:
    _PARTITION = index.PARTITION

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "runs")
        self._claims: dict[str, str] = {}  # by hour: the etag of its row when this process claimed it
        self._time_keys: dict[str, str] = {}
        self._recent = RecentRows()
        self._readers = ThreadPoolExecutor(_READERS, "runs")
        self._lock = threading.Lock()

    def insert(self, run: Run) -> bool:
        time_key = keys.newest_first(run.created_at, run.name)
        hour = table.put(self._key("h", hour_of(run.created_at)) | {"looked_at": ""})
        name = self._key("n", run.name) | {"time_key": time_key}
        row = self._key("t", time_key) | index.new_cells(run)
        try:
            etags = self._table.write(table.create(name), table.create(row), hour, *index.made(run))
        except Changed:
            return False
        self._remember(run.name, time_key)
        self._recent.keep(run.name, row, etags[1])
        return True

    def get(self, name: str) -> Stored[Run]:
        time_key = self._time_key(name)
        row = self._table.get(self._PARTITION, f"t!{time_key}") if time_key else None
        if row is None:
            raise NotFound(f"There is no run {name[:80]!r}.")
        self._recent.keep(name, row, table.etag(row))
        return Stored(_read(row), table.etag(row))

    def recent(self, name: str) -> Stored[Run]:
        if entry := self._recent.get(name):
            return Stored(_read(entry[0]), entry[1])
        return self.get(name)

    def _time_key(self, name: str) -> str:
        """Return the key of the run's row, '' for an unknown run. Keys never change, so known ones are cached."""
        if (time_key := self._time_keys.get(name)) is not None:
            return time_key
        # A caller may ask for any text; only a run's name makes a valid key.
        row = self._table.get(self._PARTITION, f"n!{name}") if RUN_NAME.fullmatch(name) else None
        if row is None:
            return ""
        return self._remember(name, str(row["time_key"]))

    def _remember(self, name: str, time_key: str) -> str:
        with self._lock:
            if len(self._time_keys) >= _KEYS_KNOWN:
                self._time_keys.clear()
            self._time_keys[name] = time_key
        return time_key

    def update(self, run: Stored[Run], after: Run) -> Stored[Run]:
        before = run.value
        key = self._key("t", keys.newest_first(before.created_at, before.name))
        cells = changed_columns(before, after, index.PARTS)
        merge = table.merge(key | cells, run.etag)
        operations = index.changed(before, after, cells)
        try:
            etag = self._table.write(merge, *operations)[0]
        except RowMissing as exc:
            if exc.index == 0:
                raise
            gone = len(index.gone(before, after))  # a row that predates the index
            etag = self._table.write(merge, *operations[: len(operations) - gone])[0]
        self._recent.merge(before.name, run.etag, cells, etag)
        return Stored(after, etag)

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        low, high = table.kind("t")
        if before is not None:
            low = f"t!{keys.newest_first(before.created_at, before.name)}\x20"  # the smallest key after this row's key
        rows = self._table.query(self._PARTITION, low, high, min(limit, _PAGE))
        return [_run(row) for row in islice(rows, limit)]

    def page(self, run_filter: RunFilter, limit: int, token: str = "", *, fields: RunFields = RunFields.ALL) -> RunPage:
        limit = min(limit, _PAGE)
        entry, enough = index.best_entry(run_filter), index.is_enough(run_filter)
        low, high = index.key_range(*entry) if entry else table.kind("t")
        columns = [*index.SELECTED[fields], *([_TIME] if fields.marked else []), *(index.COLUMNS if entry else [])]
        ask = _ask(low, _since(high, low, run_filter), columns)
        page, times = RunPage([], token), list[datetime]()
        for _ in range(1 if enough and not entry else _REQUESTS):
            size = limit - len(page.runs) if enough else _PAGE
            rows, page.token = self._table.page(ask, size, page.token)
            times += map(table.written_at, rows) if fields.marked else ()
            if self._add_matching(rows, run_filter, limit, page) or not page.token:
                break
        if page.runs and fields.marked:
            oldest = page.runs[-1]
            page.mark = _mark(f"t!{keys.newest_first(oldest.created_at, oldest.name)}", times)
        return page

    def changed(self, run_filter: RunFilter, mark: str) -> RunChanges | None:
        oldest, since = _read_mark(mark)
        columns = index.SELECTED[RunFields.ALL if run_filter.holds else RunFields.ROW]
        ask = _ask(table.kind("t")[0], f"{oldest}\x20", [*columns, _TIME], f"{_TIME} ge @since")
        ask.parameters["since"] = since - _OVERLAP
        rows, token = self._table.page(ask, _PAGE, "")
        if token:
            return None
        runs = [_run(row) for row in rows]
        fit = [run for run in runs if index.fits(run, run_filter)]
        gone = [run.name for run in runs if not index.fits(run, run_filter)]
        return RunChanges(fit, gone, _mark(oldest, [since, *map(table.written_at, rows)]))

    def _add_matching(self, rows: list[Row], run_filter: RunFilter, limit: int, page: RunPage) -> bool:
        """Add matching rows to the page. Return whether the page ends here, because it is full or costs too much."""
        rows_without_copy = 0
        for start in range(0, len(rows), limit):
            some = rows[start : start + limit]
            rows_without_copy += (without := sum(not _has_copy(row) for row in some))
            for row, run in zip(some, (self._readers.map if without else map)(self._listed, some), strict=True):
                page.looked_at += 1
                if run and index.fits(run, run_filter):
                    page.runs.append(run)
                if len(page.runs) == limit or (rows_without_copy >= limit and row is some[-1]):
                    page.token = page.token if row is rows[-1] else after_row(row)
                    return True
        return False

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        if not RUN_NAME.match(prefix):
            return []
        rows = self._table.query(self._PARTITION, f"n!{prefix}", f"n!{prefix}~", limit, ["RowKey"])
        return [str(row["RowKey"]).removeprefix("n!") for row in islice(rows, limit)]

    def _in_state(self, state: RunState) -> Iterator[tuple[str, str]]:
        low, high = index.key_range("state", state)
        for row in self._table.query(self._PARTITION, low, high, columns=["name", "cluster"]):
            yield str(row["name"]), str(row["cluster"])

    def live(self) -> list[tuple[str, str, RunState]]:
        low, high = index.live_range()
        rows = list(self._table.query(self._PARTITION, low, high, columns=["RowKey", "name", "cluster"]))
        if len(rows) >= _PAGE:  # one answer is a snapshot; before a second one, a run may move to a key already read
            return [(name, cluster, state) for state in LIVE for name, cluster in self._in_state(state)]
        return [(str(row["name"]), str(row["cluster"]), index.state_of(row)) for row in rows]

    def hours(self) -> list[str]:
        rows = self._table.query(self._PARTITION, *table.kind("h"), columns=["RowKey"])
        return [str(row["RowKey"]).removeprefix("h!") for row in rows]

    def claim_hour(self, hour: str, now: datetime, seconds: float) -> bool:
        row = self._table.get(self._PARTITION, f"h!{hour}")
        if row is None or str(row.get("looked_at", "")) > iso(now - timedelta(seconds=seconds)):
            return False
        try:
            etags = self._table.write(table.merge(self._key("h", hour) | {"looked_at": iso(now)}, table.etag(row)))
        except Changed:
            return False
        with self._lock:
            self._claims[hour] = etags[0]
        return True

    def drop_hour(self, hour: str) -> bool:
        with self._lock:
            etag = self._claims.pop(hour, "")
        try:
            self._table.write(table.delete(self._PARTITION, f"h!{hour}", etag))
        except Changed:
            return False
        return True

    def unsettled(self, hour: str, limit: int, before: Run | None = None) -> list[Stored[Run]]:
        start = start_of_hour(hour)
        low = f"t!{keys.newest_first(start + timedelta(hours=1) - _MILLISECOND)}"
        high = f"t!{keys.newest_first(start)}~"  # ~ sorts after every name
        if before is not None:
            low = f"t!{keys.newest_first(before.created_at, before.name)}\x20"
        ask = _ask(low, high, index.SELECTED[RunFields.ALL], "archived_at eq ''")
        rows = islice(self._table.all(ask), limit)
        return [Stored(_run(row), table.etag(row)) for row in rows]

    def _listed(self, index_row: Row) -> Run | None:
        """Return the run of an index row; None if the run no longer exists."""
        if _has_copy(index_row):
            return _run(index_row)
        row = self._table.get(self._PARTITION, f"t!{index_row['time_key']}", index.SELECTED[RunFields.ALL])
        return _run(row) if row else None

    def _key(self, kind: str, rest: str) -> Row:
        return {"PartitionKey": self._PARTITION, "RowKey": f"{kind}!{rest}"}


def _since(high: str, head: str, run_filter: RunFilter) -> str:
    """Return the end of the range of keys: at the first run that is too old, or the whole range."""
    if run_filter.since is None:
        return high
    return f"{head}{keys.newest_first(min(max(run_filter.since, keys.EPOCH), keys.LAST))}~"


def _mark(oldest: str, times: Iterable[datetime]) -> str:
    """Return a run's key and the time of the last write, as one text."""
    return base64.urlsafe_b64encode(json.dumps([oldest, max(times).isoformat()]).encode()).decode().rstrip("=")


def _read_mark(mark: str) -> tuple[str, datetime]:
    no_mark = Impossible("`changes` must be the value that came with a page. Begin without it.", "bad_token")
    try:
        oldest, latest = json.loads(base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)))
        since = datetime.fromisoformat(latest)
    except (ValueError, TypeError) as exc:
        raise no_mark from exc
    if not isinstance(oldest, str) or not oldest.startswith("t!") or since.tzinfo is None:
        raise no_mark
    return oldest, since


def _ask(low: str, high: str, columns: Iterable[str], also: str = "") -> table.Ask:
    query = "PartitionKey eq @partition and RowKey ge @low and RowKey lt @high"
    parameters = {"partition": TableRuns._PARTITION, "low": low, "high": high}
    return table.Ask(f"{query} and {also}" if also else query, parameters, [*columns])


def _has_copy(row: Row) -> bool:
    """Return whether the row has the listed fields: a run's own row, or an index row with a copy."""
    return bool(row.get("whole")) or not row.get("time_key")


def _read(row: Row, **other_values: Any) -> Run:
    """Return the run of a row; `other_values` are not read. Raises BadInput with the name of an unreadable column."""
    return mended(from_row(Run, row, index.PARTS, **other_values))


def _run(row: Row) -> Run:
    """Return the run of a listed row. An unreadable run is shown as broken."""
    try:
        return _read(row, request=_NO_REQUEST)
    except BadInput as exc:
        at, _, name = str(row.get("RowKey", "")).rpartition("!")[2].partition("-")
        created = keys.time_of(at)
        return Run.of(
            name=name or str(row.get("name", "")),
            drop="",
            route="",
            fingerprint="",
            experiment="",
            cluster="",
            nodes=0,
            created_at=created,
            state=RunState.BROKEN,
            reason=f"Its record is broken. {exc}",
        )
