"""The index rows by which runs are found: by state, experiment, cluster, owner and each tag, newest first. No I/O.

Each row holds a copy of the run's listed fields, written in the same transaction as the run: a page of a filter is one
request. `whole` marks such a copy. Rows that predate copies lack it, and so do the rows of a run that is too long to be
copied once per tag: for these the run's own row is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import Row, column_names, one_column_cells, part_cells, some_columns
from shared.adapters.tables.table import Operation
from shared.kernel.parts import Column, columns
from shared.runs.features import parts
from shared.runs.model import LIVE, Run, RunState
from shared.runs.ports import RunFields, RunFilter, read_columns

PARTITION = "run"
PARTS = parts()
COLUMNS = ["time_key", "whole"]  # only in index rows

_LONGEST_COPY = 32_000  # characters; a run has at most 20 copies, and a transaction takes 4 MiB

_COPIED = [each for each in columns(Run).values() if each.name != "request"]


def _selected(which: RunFields) -> list[str]:
    """Return the columns of the table that a page with these fields reads."""
    skipped = tuple(columns(Run).keys() - read_columns(which))
    of_some = {RunFields.ENTRY: (), RunFields.ROW: tuple(part for part in PARTS if part.cell or part.in_rows)}
    return ["RowKey", *column_names(Run, skipped, of_some.get(which, PARTS))]


SELECTED = {which: _selected(which) for which in RunFields}  # the columns that a page of these fields reads

Entry = tuple[str, str]  # a field, and the value by which a run is found


def made(run: Run) -> list[Operation]:
    """Return the writes of a new run's index."""
    copy = _copy(run)
    return [table.put(_row(entry, run, copy)) for entry in _entries(run)]


def changed(before: Run, after: Run, cells: Row) -> list[Operation]:
    """Return the writes that update a run's index with these changed cells. Deletions come last."""
    had, has, copy = _entries(before), _entries(after), _copy(after)
    cells = cells if copy else {"whole": False}
    kept = [table.add(_head(entry, after) | cells) for entry in has if entry in had]
    new = [table.put(_row(entry, after, copy)) for entry in has if entry not in had]
    return [*kept, *new, *gone(before, after)]


def gone(before: Run, after: Run) -> list[Operation]:
    """Return the deletions of index rows that no longer apply to the run."""
    has = _entries(after)
    return [table.delete(PARTITION, _key(entry, before)) for entry in _entries(before) if entry not in has]


def key_range(field: str, value: str) -> tuple[str, str]:
    head = f"i!{field}!{keys.token(value)}"
    return f"{head}!", f'{head}"'


def live_range() -> tuple[str, str]:
    """Return the range of keys of the runs that have not ended: no other state's name sorts between theirs."""
    ranges = [key_range("state", state) for state in LIVE]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def state_of(row: Row) -> RunState:
    """Return the state in an index row's key."""
    return RunState(str(row["RowKey"]).split("!")[2])


def best_entry(run_filter: RunFilter) -> Entry | None:
    """Return the index entry to read: the entry that usually has the fewest runs."""
    unfinished = run_filter.state in LIVE
    order = ("tag", "owner", "experiment", "cluster", "state")
    for field in ("state", *order) if unfinished else order:
        if value := getattr(run_filter, field):
            return field, value
    return None


def is_enough(run_filter: RunFilter) -> bool:
    """Return whether every run in that index (or, without one, every run) matches the filter."""
    values = (run_filter.experiment, run_filter.state, run_filter.cluster, run_filter.owner, run_filter.tag)
    return run_filter.holds is None and sum(map(bool, values)) <= 1


def fits(run: Run, run_filter: RunFilter) -> bool:
    has = run.asked.experiment, str(run.progress.state), run.asked.cluster
    tagged = not run_filter.tag or run_filter.tag in (f"{name}={value}" for name, value in run.people.tags.items())
    owned = run_filter.owner in ("", run.people.owner, run.people.owner_id)
    return (
        tagged
        and owned
        and all(
            want in ("", its)
            for its, want in zip(has, (run_filter.experiment, run_filter.state, run_filter.cluster), strict=True)
        )
        and (run_filter.holds is None or run_filter.holds(run))
    )


def _entries(run: Run) -> list[Entry]:
    """Return the fields and values by which a run is found."""
    entries = [("state", str(run.progress.state)), ("experiment", run.asked.experiment), ("cluster", run.asked.cluster)]
    entries += [("owner", who) for who in dict.fromkeys((run.people.owner, run.people.owner_id)) if who]
    return entries + [("tag", f"{name}={value}") for name, value in run.people.tags.items()]


def _row(entry: Entry, run: Run, copy: Row) -> Row:
    return _head(entry, run) | copy | {"whole": bool(copy)}


def _head(entry: Entry, run: Run) -> Row:
    time_key = keys.newest_first(run.created_at, run.name)
    row_key = {"PartitionKey": PARTITION, "RowKey": _key(entry, run)}
    return row_key | {"name": run.name, "cluster": run.asked.cluster, "time_key": time_key}


def _copy(run: Run) -> Row:
    """Return the listed columns without those at their defaults; empty for a run that is too long."""
    row = _cells(run, _COPIED)
    return row if _length(row.values()) <= _LONGEST_COPY else {}


def new_cells(run: Run) -> Row:
    """Return the columns of a new run without those at their defaults, which would take half of the time of a list.

    A query compares `archived_at` with '', so each run has this column.
    """
    return {"archived_at": ""} | _cells(run, columns(Run).values())


def _cells(run: Run, wanted: Iterable[Column]) -> Row:
    values = {each.name: value for each in wanted if (value := each.of(run)) != each.default}
    return some_columns(Run, values) | one_column_cells(run) | part_cells(run, PARTS)


def _length(cells: Iterable[Any]) -> int:
    return sum(len(cell) for cell in cells if isinstance(cell, str))


def _key(entry: Entry, run: Run) -> str:
    field, value = entry
    return f"i!{field}!{keys.token(value)}!{keys.newest_first(run.created_at, run.name)}"
