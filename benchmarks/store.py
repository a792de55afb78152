"""PyTorch's stores side by side: time per operation over a file, TCP and a table, and the table's requests.

    python -m benchmarks.store [--json]

The table is Azurite's on this machine, so the network to Azure is not in it: that comes on top, for each request.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from torch.distributed import FileStore, Store, TCPStore

from emulators.testing import azurite
from trainers.elastic.client import Table, connect
from trainers.elastic.store import AzureTableStore

ROUNDS, WAITS, THREADS = 60, 10, 8
KEYS = [f"many{number}" for number in range(16)]
BIG = bytes(512 * 1024)
# The stores take turns at each operation, so that a busy moment of the machine meets all of them.
OPERATIONS: dict[str, Callable[[Any, int], object]] = {
    "set": lambda store, number: store.set(f"key{number}", "value"),
    "get": lambda store, number: store.get(f"key{number}"),
    "check": lambda store, number: store.check([f"key{number}"]),
    "add": lambda store, _: store.add("sum", 1),
    "compare_set": lambda store, number: store.compare_set(f"new{number}", "", "value"),
    "append": lambda store, _: store.append("text", "x"),
    "set of 16": lambda store, _: store.multi_set(KEYS, ["value"] * 16),
    "get of 16": lambda store, _: store.multi_get(KEYS),
    "set of 512 KiB": lambda store, _: store.set("big", BIG),
    "get of 512 KiB": lambda store, _: store.get("big"),
}


def median(work: Callable[[int], object], rounds: int) -> float:
    """The median seconds of one call."""
    taken = []
    for number in range(rounds):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _end_of_wait(store: Store, key: str) -> float:
    store.wait([key])
    return time.perf_counter()


def waited(store: Any) -> float:
    """Seconds from the start of a set to the return of a wait that began 0.2 s before: the median."""
    late = []
    with ThreadPoolExecutor(1) as pool:
        for number in range(WAITS):
            other = store.clone()
            done = pool.submit(_end_of_wait, other, f"late{number}")
            time.sleep(0.2)
            began = time.perf_counter()
            store.set(f"late{number}", "value")
            late.append(done.result() - began)
    return statistics.median(late)


def together(store: Any) -> float:
    """Seconds per add when THREADS add to one number at the same time."""
    clones = [store.clone() for _ in range(THREADS)]
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda clone: [clone.add("contended", 1) for _ in range(5)], clones))
    return (time.perf_counter() - began) / (5 * THREADS)


def _median_of(work: Callable[[Any, int], object]) -> Callable[[Store], float]:
    return lambda store: median(lambda number: work(store, number), ROUNDS)


def measure(stores: dict[str, Store], table: Table) -> list[dict[str, float | str]]:
    calls: dict[str, tuple[Callable[[Store], float], int]] = {
        name: (_median_of(work), ROUNDS) for name, work in OPERATIONS.items()
    }
    calls["set to end of wait"] = waited, WAITS
    calls[f"add, {THREADS} at once"] = together, 5 * THREADS
    rows: list[dict[str, float | str]] = []
    for name, (call, times) in calls.items():
        before = table.requests
        seconds = {kind: call(store) for kind, store in stores.items()}
        rows.append({"operation": name, **seconds, "requests": (table.requests - before) / times})
    return rows


def main(argv: list[str]) -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        azurite.start(Path(folder) / "azurite", key=azurite.KEY) as account,
        closing(connect(account.table_url, {})) as table,
    ):
        stores: dict[str, Store] = {
            "file": FileStore(str(Path(folder) / "store"), 1),
            "tcp": TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False),
            "table": AzureTableStore(table, "benchmark"),
        }
        stores["table"].set("first", "value")  # makes the table, and the connection
        rows = measure(stores, table)
    if "--json" in argv:
        print(json.dumps(rows))
        return 0
    print(
        f"{'milliseconds':20} {'file':>9} {'tcp':>9} {'table':>9} {'table/file':>11} {'table/tcp':>10} {'requests':>9}"
    )
    for row in rows:
        file, tcp, own = (1000 * float(row[kind]) for kind in ("file", "tcp", "table"))
        ratios = f"{own / file:11.1f} {own / tcp:10.1f} {row['requests']:9.1f}"
        print(f"{row['operation']:20} {file:9.3f} {tcp:9.3f} {own:9.3f} {ratios}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
