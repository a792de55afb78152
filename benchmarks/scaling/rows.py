"""A table of a million runs: the newest hundred, and filters.

The app's own adapter inserts two hundred runs. The other rows are copies of these runs under other names and times,
made inside the service's file, because a million inserts over HTTP would take two hours.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from azure.data.tables import TableServiceClient

from benchmarks.scaling.cloud import p95
from emulators.storage import services
from shared.adapters.tables import keys
from shared.adapters.tables.run_table import TableRuns
from shared.jobs.command import Command
from shared.jobs.spec import JobSpec
from shared.runs.decide import first_moment
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter
from tests.fakes.parts import changed

PATTERNS, ROUNDS = 200, 40
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=20)  # between two runs
STATES = (RunState.COMPLETED, RunState.FAILED, RunState.CANCELED, RunState.RUNNING)
FILTERS = {
    "newest": RunFilter(),
    "experiment": RunFilter(experiment="experiment-3"),
    "state": RunFilter(state="running"),
    "cluster": RunFilter(cluster="cluster-1"),
    "owner": RunFilter(owner="owner-7"),
    "tag": RunFilter(tag="team=11"),
    "experiment and owner": RunFilter(experiment="experiment-3", owner="owner-3"),
}

ONE_VALUE = ("experiment", "state", "cluster", "owner", "tag")


def measure(home: Path, runs: int) -> dict[str, Any]:
    with services.start(home) as running, closing(_service(running)) as service:
        table = TableRuns(service)
        for number in range(PATTERNS):
            table.insert(_run(number))
    began = time.monotonic()
    rows = _multiply(home / "state" / "tables.sqlite", runs)
    loaded, log = time.monotonic() - began, home / "access.log"
    with services.start(home, access_log=str(log)) as running, closing(_service(running)) as service:
        table = TableRuns(service)
        table.page(RunFilter(), 100)
        asked = {name: _ask(table, wanted, log) for name, wanted in FILTERS.items()}
    slowest = max((asked[name] for name in ONE_VALUE), key=lambda one: float(one["p95_ms"]))
    return {
        "runs": runs,
        "rows": rows,
        "loaded_seconds": round(loaded, 1),
        "asked": asked,
        "by_one_value": {key: slowest[key] for key in ("p50_ms", "p95_ms", "requests")},  # of the slowest filter
    }


def _service(running: services.Services) -> TableServiceClient:
    return TableServiceClient.from_connection_string(running.connection_string)


def _ask(table: TableRuns, wanted: RunFilter, log: Path) -> dict[str, Any]:
    """Request the newest 100 runs several times, and return the milliseconds and the requests of one page."""
    taken, requests, found = [], Counter[int](), 0
    for _ in range(ROUNDS):
        before, began = len(log.read_bytes().splitlines()), time.perf_counter()
        found = len(table.page(wanted, 100).runs)
        taken.append(1000 * (time.perf_counter() - began))
        requests[len(log.read_bytes().splitlines()) - before] += 1
    return {"p50_ms": round(sorted(taken)[len(taken) // 2], 1), "p95_ms": round(p95(taken), 1),
            "requests": max(requests), "found": found}  # fmt: skip


def _run(number: int) -> Run:
    at = FIRST + number * STEP
    run = Run.of(
        name=_name(number),
        drop=f"noop/d{number}",
        route="noop",
        fingerprint=f"{number:064x}",
        experiment=f"experiment-{number % 10}",
        cluster=f"cluster-{number % 4}",
        nodes=2,
        created_at=at,
        state=STATES[number % 4],
        owner=f"owner-{number % 20}",
        tags={"team": str(number % 50)},
        request=JobSpec(command=Command(("python train.py " + 40 * "--option value ",)), inputs={"epochs": 2}),
        archived_at=None if STATES[number % 4] is RunState.RUNNING else at,
    )
    return changed(run, history=first_moment(run))


def _name(number: int) -> str:
    return f"noop-{number:016x}"


def _multiply(file: Path, runs: int) -> int:
    """Copy the pattern's rows until there are `runs` runs, and return the number of rows."""
    with closing(sqlite3.connect(file, timeout=60)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -400000")
        patterns = db.execute("SELECT tbl, partition, row, body FROM entities WHERE row NOT LIKE 'h!%'").fetchall()
        patterns.sort(key=lambda row: _number_in(row[3] + row[2]))
        by_run = [list(rows) for _, rows in groupby(patterns, key=lambda row: _number_in(row[3] + row[2]))]
        # The index ranges are filled one after another, in the order of their keys, which begins with the newest run.
        for kind in sorted({re.sub(r"\d{14}-.*|noop-.*", "", row[2]) for row in patterns}):
            with db:
                db.executemany("INSERT OR IGNORE INTO entities VALUES (?, ?, ?, ?, ?)", _copies(by_run, kind, runs))
        (count,) = db.execute("SELECT count(*) FROM entities").fetchone()
    return int(count)


def _number_in(text: str) -> int:
    found = re.search(r"noop-([0-9a-f]{16})", text)
    assert found is not None
    return int(found[1], 16)


def _copies(by_run: list[list[Any]], kind: str, runs: int) -> Iterator[tuple[Any, ...]]:
    patterns = [
        (number, [row for row in rows if row[2].startswith(kind) and re.sub(r"\d{14}-.*|noop-.*", "", row[2]) == kind])
        for number, rows in enumerate(by_run)
    ]
    patterns = [(number, rows) for number, rows in patterns if rows]
    for turn in range(runs // PATTERNS - 1, 0, -1):
        for number, rows in reversed(patterns):
            copy = turn * PATTERNS + number
            old = (_name(number), _time_key(number)[:14])
            new = (_name(copy), _time_key(copy)[:14])
            for table, partition, row, body in rows:
                yield (
                    table,
                    partition,
                    row.replace(old[0], new[0]).replace(old[1], new[1]),
                    639_000_000_000_000_000 + copy,
                    body.replace(old[0], new[0]).replace(old[1], new[1]),
                )


def _time_key(number: int) -> str:
    return keys.newest_first(FIRST + number * STEP, _name(number))
