"""What nothing costs: the storage requests of one pair of timers, reconcile and sweep, while nobody uses the system.

    python -m benchmarks.idle [--json]

The local cloud's host serves HTTP alone, and the timers' functions run in this process, with telemetry and without, on
an account that was never used, and on one where every route has a drop. The first pairs of a process ask for more: they
are left out. Target: at most 25 a pair with telemetry where nothing was ever dropped. Each route with drops adds two,
which find drops without events.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from functions import clusters, jobs, telemetry
from local.cloud import Cloud, Options
from shared import bootstrap
from shared.drops.model import Drop, DropState
from shared.kernel import places
from shared.kernel.drop_key import DropKey

FLEX = {"WEBSITE_SKU": "FlexConsumption", "FUNCTIONS_TARGET_GROUP": "http"}
NOWHERE = "http://127.0.0.1:9"  # a collector that is away; what is sent to it is no request to storage
PAIRS = 3  # of which the last is counted: by then each queue was asked once


def measure(home: Path) -> dict[str, dict[str, int]]:
    log = home / "storage.log"
    with Cloud.start(home / "cloud", Options(storage_log=log, app_env=FLEX)) as cloud:
        os.environ.update(cloud._parts["host"].env)
        found = {"never used": _pair(log)}
        os.environ[telemetry.OTLP] = NOWHERE
        telemetry.on.cache_clear()
        found["never used, telemetry"] = _pair(log)
        _use_every_route(cloud.connection_string)
        found["a drop in each route, telemetry"] = _pair(log)
    return found


def _pair(log: Path) -> dict[str, int]:
    for _ in range(PAIRS):
        before = len(log.read_text().splitlines())
        for builder in (jobs.reconcile_timer, clusters.sweep_timer):
            function: Any = builder
            function.build().get_user_function()(None)
    asked = log.read_text().splitlines()[before:]
    return dict(Counter(_shape(line) for line in asked))


def _shape(line: str) -> str:
    """The request without what is different each time."""
    return re.sub(r"\d{8}T?\d*|'[^']*'", "*", line)


def _use_every_route(connection_string: str) -> None:
    system, now = bootstrap.system(), datetime.now(UTC)
    with ContainerClient.from_connection_string(connection_string, places.DROPS_CONTAINER) as container:
        for route in system.routes:
            container.upload_blob(f"{route}/first/1.bin", b"1")
            system.drops.insert(Drop(DropKey(route, "first"), DropState.SEALED, "", now))


def main(argv: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        found = measure(Path(home))
    if "--json" in argv:
        print(json.dumps({name: sum(requests.values()) for name, requests in found.items()}))
        return
    for name, requests in found.items():
        print(f"{name}: {sum(requests.values())}")
        for request, count in sorted(requests.items()):
            print(f"  {count:3} {request}")


if __name__ == "__main__":
    main(sys.argv[1:])
