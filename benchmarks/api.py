"""The HTTP API on the local host: the 202 of a submission, and lists and reports over 200 and 10,000 runs and 100
drops.

    python3 trainyard.py bench api [--quick] [--json]

Targets: a warm 202 at p95 under 100 ms; the newest 100 runs in 30 ms and 40 kB, with a constant number of table
requests (counted in the access log of the storage part); costs and status in 50 ms (medians). `details` is the same
list with all fields. The jobs do nothing, and no node ever starts.

`warm_202` waits before each submission until the previous job is at Azure ML. `burst_202` does not wait: the app's
single process then sends jobs to Azure ML, which takes CPU time of the SDK, while it answers.
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
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from azure.storage.blob import ContainerClient

from benchmarks._options import options
from emulators import process
from local.cloud import Cloud, Options
from shared.adapters.storage import account
from shared.adapters.tables.drop_table import TableDrops
from shared.adapters.tables.run_table import TableRuns
from shared.drops.model import Drop, DropState
from shared.jobs.command import Command
from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.settings import Storage
from shared.runs.model import Moment, Run, RunState
from tests.fakes.parts import changed


@dataclass(frozen=True)
class Size:
    """Number of submissions, of runs in the table (first a few, then many), and of answers of each kind."""

    submissions: int = 100
    some: int = 200
    runs: int = 10_000
    lists: int = 30


QUICK = Size(10, 50, 500, 5)
WRITERS = 8  # threads that write runs at the same time
ROUTES = "routes: {noop: {template: noop.yaml, cluster: cpu-cluster}}\n"
TEMPLATE = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/x/}, epochs: 1}
outputs: {models: {type: uri_folder}}
"""
DROPS = 100
NEWEST = {"limit": "100"}
ASKED: dict[str, tuple[str, dict[str, str]]] = {
    "newest_100": ("runs", NEWEST),
    "newest_100_details": ("runs", NEWEST | {"details": "true"}),
    "newest_100_failed": ("runs", NEWEST | {"state": "failed"}),
    "of_no_experiment": ("runs", NEWEST | {"experiment": "none"}),
    "drops_100": ("drops", {"limit": str(DROPS)}),
    "costs": ("costs", {}),
    "status": ("status", {}),
}


def timed(
    call: Callable[[], httpx.Response], times: int, after: Callable[[httpx.Response], object] = lambda _: None
) -> list[float]:
    """Return the milliseconds of each call, which must succeed. `after` runs after each call and is not timed."""
    samples = []
    for _ in range(times):
        began = time.perf_counter()
        answer = call().raise_for_status()
        samples.append(1000 * (time.perf_counter() - began))
        after(answer)
    return samples


def spread(samples: list[float]) -> dict[str, float]:
    p95 = statistics.quantiles(samples, n=20)[18]
    return {"p50_ms": round(statistics.median(samples), 1), "p95_ms": round(p95, 1), "max_ms": round(max(samples), 1)}


def fill(connection_string: str, numbers: range) -> None:
    """Write these runs with their index rows, as the app does. One run in a thousand is failed."""
    clients = account.clients(Storage(connection_string=connection_string))
    with closing(clients.table), closing(clients.blob), closing(clients.queue):
        runs = TableRuns(clients.table)
        with ThreadPoolExecutor(WRITERS) as pool:
            assert all(pool.map(lambda number: runs.insert(finished_run(number)), numbers))


def fill_drops(connection_string: str) -> None:
    """Write these drops as the app does: closed, and each with its own job."""
    clients = account.clients(Storage(connection_string=connection_string))
    job = JobSpec(command=Command(("x" * 2000,)))
    with closing(clients.table), closing(clients.blob), closing(clients.queue):
        drops = TableDrops(clients.table)
        for number in range(DROPS):
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
            opened = drops.insert(Drop(DropKey("shelf", f"drop-{number:06}"), DropState.OPEN, f"{number:032x}", at))
            sealed: dict[str, Any] = {
                "state": DropState.SEALED,
                "run": f"shelf-{number:016x}",
                "fingerprint": "f" * 64,
                "request": job,
            }
            why = "The marker _SUCCESS arrived."
            closed = replace(opened.value, generation=1, sealed_at=at, blobs=9, bytes=90, why=why, **sealed)
            drops.replace(closed, opened)


def finished_run(number: int) -> Run:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    states = (RunState.RECEIVED, RunState.SUBMITTED, RunState.RUNNING, RunState.COMPLETED)
    history = tuple(Moment(state, at, "Something happened here.") for state in states)
    state = RunState.FAILED if number % 1000 == 0 else RunState.COMPLETED
    run = Run.of(
        name=f"run-{number:016x}",
        drop="shelf/a",
        route="noop",
        fingerprint="f" * 64,
        experiment="noop",
        cluster="cpu-cluster",
        nodes=2,
        created_at=at,
        request=JobSpec(command=Command(("x" * 2000,))),
    )
    metrics = {"loss": 0.1, "accuracy": 0.9}
    return changed(run, state=state, history=history, last_metrics=metrics, archived_at=at)


def table_requests(cloud: Cloud) -> int:
    """Return how many queries of the runs table have been answered so far."""
    assert cloud.options.storage_log is not None
    lines = cloud.options.storage_log.read_text().splitlines()
    return sum(line.startswith("GET") and line.split()[1].endswith(("/runs()", "/runs")) for line in lines)


def measure(home: Path, size: Size) -> dict[str, Any]:
    (home / "routes.yaml").write_text(ROUTES)
    (home / "noop.yaml").write_text(TEMPLATE)
    options = Options(routes=home / "routes.yaml", node_start_seconds=3600, storage_log=home / "storage.log")
    with Cloud.start(home / "cloud", options) as cloud, httpx.Client(base_url=cloud.api, timeout=60) as api:
        with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
            drops.upload_blob("shelf/a/1.bin", b"x")
        body = {"template": "noop", "data": "drops/shelf/a"}

        def is_sent(answer: httpx.Response) -> None:
            run = answer.json()["run"]
            process.wait_for(lambda: api.get(f"runs/{run}").json()["job"], 60, f"the job of {run}")

        first = timed(lambda: api.post("runs", json=body), 1, is_sent)
        warm = timed(lambda: api.post("runs", json=body), size.submissions, is_sent)
        burst = timed(lambda: api.post("runs", json=body), size.submissions)
        result: dict[str, Any] = {
            "first_202_ms": round(first[0], 1),
            "warm_202": spread(warm),
            "burst_202": spread(burst),
        }
        fill_drops(cloud.connection_string)
        for numbers in (range(size.some), range(size.some, size.runs)):
            fill(cloud.connection_string, numbers)
            result[f"{numbers.stop} runs"] = {
                name: answers(cloud, api, *ask, size.lists) for name, ask in ASKED.items()
            }
    return result


def answers(cloud: Cloud, api: httpx.Client, path: str, query: dict[str, str], times: int) -> dict[str, float]:
    """Measure the time and the size of the answers, and how many queries of the runs table each answer needs."""
    length = len(api.get(path, params=query, headers={"Accept-Encoding": "identity"}).content)
    before = table_requests(cloud)
    samples = timed(lambda: api.get(path, params=query), times)
    return {**spread(samples), "bytes": length, "table_requests_each": (table_requests(cloud) - before) / times}


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK.submissions} submissions, {QUICK.runs} runs").parse_args(argv)
    size = QUICK if asked.quick else Size()
    with tempfile.TemporaryDirectory() as home:
        result = measure(Path(home), size)
    if asked.json:
        print(json.dumps(result))
        return
    print(f"HTTP API: {size.submissions} submissions, lists among {size.runs:,} runs")
    for name, value in result.items():
        if not name.endswith(" runs"):
            print(f"  {name:24} {value}")
            continue
        print(f"  {name}")
        for one, its in value.items():
            print(f"    {one:22} {its}")


if __name__ == "__main__":
    main(sys.argv[1:])
