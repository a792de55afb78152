"""The runs in Azure Table Storage, in one partition, so that one transaction writes a run and what finds it.

    key                                        row
    t!<inverted milliseconds>-<name>           the run; the newest has the first key
    n!<name>                                   where the run's row is, for ever
    h!<hour>                                   an hour in which runs were made that may not be settled
    i!<field>!<value>!<time key as above>      the run's name and cluster, by experiment, state, cluster, owner and tag

One partition takes some 2,000 writes a second; a run makes about ten in its life.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from dataclasses import replace as with_
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters import keys, table
from shared.adapters.records import Row, column_names, from_row, iso, some_columns, to_row
from shared.adapters.table import RowMissing, Table
from shared.kernel.errors import BadInput, Changed, Impossible, NotFound
from shared.kernel.stored import Stored
from shared.runs.model import RUN_NAME, Run, RunState, hour_of, start_of_hour
from shared.runs.ports import RunChanges, RunFilter, RunPage

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_PAGE = 1000  # the most rows that the service gives in one answer
_INDEX_PAGES = 4  # read for one page of a filter; a page may then be short, and has a token
_KEYS_KNOWN = 10_000  # names of runs whose rows' places are remembered, 2 MiB
_READERS = 8  # rows of a filter's page read at the same time
_MILLISECOND = timedelta(milliseconds=1)
_OVERLAP = timedelta(seconds=1)  # writes of one moment may become visible in another order than that of their times
_LISTED = column_names(Run, skip=("request",))  # what a list of runs is made of
_TIME = ["RowKey", "Timestamp"]  # when a row was written last, as the service says, and where it stands
_SHOWN = {"name", "drop", "route", "fingerprint", "experiment", "cluster", "nodes", "created_at", "state", "history"}
_SHOWN |= {"owner", "tags", "parameters", "best_metrics", "cost", "removed_at"}
_BRIEF = column_names(Run, skip=tuple(f.name for f in fields(Run) if f.name not in _SHOWN))


class TableRuns:
    _PARTITION = "run"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "runs")
        self._claims: dict[str, str] = {}  # hour: the etag of its row when we claimed it
        self._time_keys: dict[str, str] = {}
        self._readers = ThreadPoolExecutor(_READERS, "runs")
        self._lock = threading.Lock()

    def insert(self, run: Run) -> bool:
        time_key = keys.newest_first(run.created_at, run.name)
        hour = table.put(self._key("h", hour_of(run.created_at)) | {"looked_at": ""})
        index = [table.put(self._index_row(entry, run)) for entry in _entries(run)]
        name = self._key("n", run.name) | {"time_key": time_key}
        row = self._key("t", time_key) | to_row(run)
        try:
            self._table.write(table.create(name), table.create(row), hour, *index)
        except Changed:
            return False
        return True

    def get(self, name: str) -> Stored[Run]:
        time_key = self._time_key(name)
        row = self._table.get(self._PARTITION, f"t!{time_key}") if time_key else None
        if row is None:
            raise NotFound(f"There is no run {name[:80]!r}.")
        return Stored(from_row(Run, row), table.etag(row))

    def _time_key(self, name: str) -> str:
        """Where the run's row is, '' for no run. That never changes, so what was found once is not asked for again."""
        if (known := self._time_keys.get(name)) is not None:
            return known
        # Any text may be asked for; only a run's name makes a valid key.
        found = self._table.get(self._PARTITION, f"n!{name}") if RUN_NAME.fullmatch(name) else None
        if found is None:
            return ""
        with self._lock:
            if len(self._time_keys) >= _KEYS_KNOWN:
                self._time_keys.clear()
            self._time_keys[name] = str(found["time_key"])
        return str(found["time_key"])

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        before, after = run.value, with_(run.value, **changes)
        key = self._key("t", keys.newest_first(before.created_at, before.name))
        merge = table.merge(key | some_columns(Run, changes), run.etag)
        if after.state is before.state:
            return Stored(after, self._table.write(merge)[0])
        put = table.put(self._index_row(("state", after.state), after))
        old = table.delete(self._PARTITION, self._index_key("state", before.state, before))
        try:
            return Stored(after, self._table.write(merge, put, old)[0])
        except RowMissing as exc:
            if exc.index == 0:
                raise
            return Stored(after, self._table.write(merge, put)[0])  # a row from before there was an index

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        low, high = table.kind("t")
        if before is not None:
            low = f"t!{keys.newest_first(before.created_at, before.name)}\x20"  # the next key after this one
        rows = self._table.query(self._PARTITION, low, high, min(limit, _PAGE))
        return [_run(row) for row in islice(rows, limit)]

    def page(self, wanted: RunFilter, limit: int, token: str = "", *, brief: bool = False) -> RunPage:
        limit, columns = min(limit, _PAGE), [*(_BRIEF if brief else _LISTED), *_TIME]
        entry = _best_entry(wanted)
        if entry is None:
            low, high = table.kind("t")
            rows, token = self._table.page(_ask(low, _since(high, "t!", wanted), columns), limit, token)
            return RunPage([_run(row) for row in rows], token, _mark(rows))
        rows = list[Row]()
        for _ in range(_INDEX_PAGES):
            low, high = self._index_range(*entry)
            found, token = self._table.page(
                _ask(low, _since(high, low, wanted), ["name", "time_key"]), limit - len(rows), token
            )
            read = self._readers.map(partial(self._listed, columns=columns), found)
            rows += [row for row in read if row and _fits(_run(row), wanted)]
            if not token or len(rows) >= limit:
                break
        return RunPage([_run(row) for row in rows], token, _mark(rows))

    def changed(self, wanted: RunFilter, mark: str) -> RunChanges | None:
        oldest, since = _read_mark(mark)
        ask = _ask(table.kind("t")[0], f"{oldest}\x20", [*_BRIEF, *_TIME], "Timestamp ge @since")
        ask.parameters["since"] = since - _OVERLAP
        rows, token = self._table.page(ask, _PAGE, "")
        if token:
            return None
        runs = [_run(row) for row in rows]
        fit = [run for run in runs if _fits(run, wanted)]
        gone = [run.name for run in runs if not _fits(run, wanted)]
        return RunChanges(fit, gone, _mark(rows, (oldest, since)))

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        if not RUN_NAME.match(prefix):
            return []
        rows = self._table.query(self._PARTITION, f"n!{prefix}", f"n!{prefix}~", limit, ["RowKey"])
        return [str(row["RowKey"]).removeprefix("n!") for row in islice(rows, limit)]

    def in_state(self, state: RunState) -> Iterator[tuple[str, str]]:
        low, high = self._index_range("state", state)
        for row in self._table.query(self._PARTITION, low, high, columns=["name", "cluster"]):
            yield str(row["name"]), str(row["cluster"])

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
        high = f"t!{keys.newest_first(start)}~"  # ~ is beyond every name
        if before is not None:
            low = f"t!{keys.newest_first(before.created_at, before.name)}\x20"
        ask = _ask(low, high, _LISTED, "archived_at eq ''")
        rows = islice(self._table.all(ask), limit)
        return [Stored(_run(row), table.etag(row)) for row in rows]

    def _listed(self, found: Row, columns: list[str]) -> Row | None:
        return self._table.get(self._PARTITION, f"t!{found['time_key']}", columns)

    def _key(self, kind: str, rest: str) -> Row:
        return {"PartitionKey": self._PARTITION, "RowKey": f"{kind}!{rest}"}

    def _index_row(self, entry: tuple[str, str], run: Run) -> Row:
        time_key = keys.newest_first(run.created_at, run.name)
        key = {"PartitionKey": self._PARTITION, "RowKey": self._index_key(*entry, run)}
        return key | {"name": run.name, "cluster": run.cluster, "time_key": time_key}

    def _index_key(self, field: str, value: str, run: Run) -> str:
        return f"i!{field}!{keys.token(value)}!{keys.newest_first(run.created_at, run.name)}"

    def _index_range(self, field: str, value: str) -> tuple[str, str]:
        head = f"i!{field}!{keys.token(value)}"
        return f"{head}!", f'{head}"'


def _entries(run: Run) -> Iterator[tuple[str, str]]:
    """The fields and values by which a run is found."""
    yield from (("state", run.state), ("experiment", run.experiment), ("cluster", run.cluster))
    if run.owner:
        yield "owner", run.owner
    for name, value in run.tags.items():
        yield "tag", f"{name}={value}"


def _best_entry(wanted: RunFilter) -> tuple[str, str] | None:
    """The index to read: the one that usually has the fewest runs."""
    unfinished = wanted.state in ("received", "submitted", "queued", "running")
    order = ("tag", "owner", "experiment", "cluster", "state")
    for field in ("state", *order) if unfinished else order:
        if value := getattr(wanted, field):
            return field, value
    return None


def _fits(run: Run, wanted: RunFilter) -> bool:
    pairs = ((getattr(run, field), getattr(wanted, field)) for field in ("experiment", "state", "cluster", "owner"))
    tagged = not wanted.tag or wanted.tag in (f"{name}={value}" for name, value in run.tags.items())
    return tagged and all(want in ("", has) for has, want in pairs)


def _since(high: str, head: str, wanted: RunFilter) -> str:
    """Where the range of keys ends: with the first run that is old enough, or as a whole."""
    if wanted.since is None:
        return high
    return f"{head}{keys.newest_first(min(max(wanted.since, keys.EPOCH), keys.LAST))}~"


def _mark(rows: Sequence[Row], before: tuple[str, datetime] | None = None) -> str:
    """The oldest row's key and the time of the last write, as text; '' for no rows, of which nothing can change."""
    times = [table.written_at(row) for row in rows]
    if before is None and not times:
        return ""
    oldest = before[0] if before else str(max(row["RowKey"] for row in rows))
    latest = max([*times, *([before[1]] if before else [])])
    return base64.urlsafe_b64encode(json.dumps([oldest, latest.isoformat()]).encode()).decode().rstrip("=")


def _read_mark(mark: str) -> tuple[str, datetime]:
    no_mark = Impossible("`changes` is nothing that came with a page. Begin without it.", "bad_token")
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


def _run(row: Row) -> Run:
    """The run of a row of a list. One that can't be read is shown as broken, and stops no other."""
    try:
        return from_row(Run, {**row, "request": "{}"})
    except BadInput as exc:
        at, _, name = str(row.get("RowKey", "")).removeprefix("t!").partition("-")
        created = keys.time_of(at)
        return Run(
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
