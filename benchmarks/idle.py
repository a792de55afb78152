"""The cost of idling: the storage requests of one pair of timers, reconcile and sweep, while the system is unused.

    python3 trainyard.py bench idle [--quick] [--json]

The local cloud's host serves only HTTP, and the timers' functions run in this process, with and without telemetry. The
accounts: one that was never used, one in which every route has a drop, and one in which, in addition, a run ended an
hour ago. The timers check routes and empty queues in turns, so many pairs are counted, and the maximum and the mean are
reported. The first pair of a process checks all routes and queues, and is reported separately. Target: at most 25, with
telemetry, a drop in each route, and a run that ended.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from benchmarks._options import options
from benchmarks.api import finished_run
from emulators.process import wait_for
from functions import telemetry, timers
from local.cloud import Cloud, Options
from shared import bootstrap
from shared.clusters.samples import sample_of
from shared.drops.model import Drop, DropState
from shared.kernel import places
from shared.kernel.drop_key import DropKey
from shared.runs.model import Moment, RunState
from shared.system import System
from tests.fakes.parts import changed

FLEX = {"WEBSITE_SKU": "FlexConsumption", "FUNCTIONS_TARGET_GROUP": "http"}
LIST_BLOBS = "GET /devstoreaccount1/drops 200"
NOWHERE = "http://127.0.0.1:9"  # an unreachable collector; requests to it do not count as storage requests
PAIRS, QUICK = 12, 4  # in PAIRS, each turn of the routes meets each turn of the queues


@dataclass
class Requests:
    """The storage requests of the pairs, counted by shape."""

    first: Counter[str]
    later: list[Counter[str]]

    def summary(self) -> dict[str, float]:
        sums = [pair.total() for pair in self.later]
        lists = sum(pair[LIST_BLOBS] for pair in self.later) / len(sums)
        return {
            "most": max(sums),
            "mean": round(sum(sums) / len(sums), 1),
            "of these list blobs": round(lists, 1),
            "first of a process": self.first.total(),
        }


def measure(home: Path, pairs: int) -> dict[str, Requests]:
    log = home / "storage.log"
    with Cloud.start(home / "cloud", Options(storage_log=log, app_env=FLEX)) as cloud:
        os.environ.update(cloud._parts["host"].env)
        found = {"never used": _pairs(log, pairs)}
        os.environ[telemetry.OTLP] = NOWHERE
        telemetry.on.cache_clear()
        found["never used, telemetry"] = _pairs(log, pairs)
        _use_every_route(cloud.connection_string)
        found["a drop in each route, telemetry"] = _pairs(log, pairs)
        _run_ended(bootstrap.system())
        found["a run that ended an hour ago, too"] = _pairs(log, pairs)
    return found


def _pairs(log: Path, count: int) -> Requests:
    """Count the requests of a new process: of its first pair, and of the following pairs."""
    bootstrap.system.cache_clear()
    first = _pair(log)
    _pair(log)  # checks the first pair's findings again
    return Requests(first, [_pair(log) for _ in range(count)])


def _pair(log: Path) -> Counter[str]:
    before = len(log.read_text().splitlines())
    for builder in (timers.reconcile_timer, timers.scaling_timer):
        function: Any = builder
        function.build().get_user_function()(None)
    return Counter(_shape(line) for line in log.read_text().splitlines()[before:])


def _shape(line: str) -> str:
    """Return the request without the parts that differ each time."""
    return re.sub(r"\d{8}T?\d*|'[^']*'", "*", line)


def _use_every_route(connection_string: str) -> None:
    system, now = bootstrap.system(), datetime.now(UTC)
    with ContainerClient.from_connection_string(connection_string, places.DROPS_CONTAINER) as container:
        for route in system.routes:
            container.upload_blob(f"{route}/first/1.bin", b"1")
            system.drops.insert(Drop(DropKey(route, "first"), DropState.SEALED, "", now))
    with QueueClient.from_connection_string(connection_string, "drop-events") as events:
        wait_for(lambda: len(events.peek_messages(32)) == len(system.routes), 60, "the uploads' events")
        events.clear_messages()


def _run_ended(system: System) -> None:
    """Insert a run of one node that began two hours ago, ended an hour later, and is archived. Its cluster had the
    node during that time."""
    now = datetime.now(UTC)
    began, ended = now - timedelta(hours=2), now - timedelta(hours=1)
    moments = ((RunState.RECEIVED, began), (RunState.RUNNING, began), (RunState.COMPLETED, ended))
    history = tuple(Moment(state, at, "") for state, at in moments)
    run = replace(finished_run(1), created_at=began)
    system.runs.insert(changed(run, state=RunState.COMPLETED, history=history, archived_at=ended))
    for hour in system.runs.hours():  # as after the hour's check found no unfinished run
        system.runs.claim_hour(hour, now, 0)
        system.runs.drop_hour(hour)
    cluster = system.clusters.list()[0]
    for at, nodes in ((began, 1), (ended, 0)):
        system.samples.record(sample_of(replace(cluster, nodes=nodes, busy_nodes=nodes), at))


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK} pairs").parse_args(argv)
    pairs = QUICK if asked.quick else PAIRS
    with tempfile.TemporaryDirectory() as home:
        found = measure(Path(home), pairs)
    if asked.json:
        print(json.dumps({name: requests.summary() for name, requests in found.items()}))
        return
    for name, requests in found.items():
        print(f"{name}: {requests.summary()}")
        for request, count in sorted(sum(requests.later, Counter()).items()):
            print(f"  {count / pairs:4.1f} {request}")


if __name__ == "__main__":
    main(sys.argv[1:])
