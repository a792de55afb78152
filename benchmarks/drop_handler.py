"""Events per second through the drop handler, and the handler's own time per event. Target: own p99 < 50 ms.

    python3 trainyard.py bench drop_handler [--quick] [--json]

The events of one drop go through decode and note_upload one after another, against Table Storage on Azurite. The
handler's own time is its total time minus the time inside its calls to storage.
"""

from __future__ import annotations

import base64
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks._options import options
from emulators.testing import azurite
from shared import wiring
from shared.drops import collect
from shared.events import incoming
from shared.kernel.index_settings import ROOT
from shared.kernel.settings import Settings, Storage, Workspace
from shared.system import System

EVENTS, QUICK = 2000, 200


class Timed:
    """A port whose calls are timed. `spent` is the sum in seconds."""

    def __init__(self, target: Any) -> None:
        self.target, self.spent = target, 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                self.spent += time.perf_counter() - began

        return call


def event(number: int) -> bytes:
    body = {
        "eventType": "Microsoft.Storage.BlobCreated",
        "subject": f"/blobServices/default/containers/drops/blobs/mnist/bench/{number:05}.bin",
        "eventTime": datetime.now(UTC).isoformat(),
        "data": {"api": "PutBlob", "eTag": "0x1", "contentLength": 1},
    }
    return base64.b64encode(json.dumps(body).encode())


def handle(system: System, body: bytes) -> None:
    written = incoming.blob_written(incoming.decode(body))
    assert written is not None
    collect.note_upload(system, written.name, written.at)


def measure(connection_string: str, events: int) -> dict[str, float]:
    settings = Settings(
        Storage(connection_string=connection_string), Workspace("s", "g", "w"), ROOT / "routes.yaml", None
    )
    plain = wiring.build(settings)
    table, queues = Timed(plain.drops), Timed(plain.queues)
    system: System = replace(plain, drops=table, queues=queues)
    own, wall = [], []
    for number in range(events):
        body, before = event(number), table.spent + queues.spent
        began = time.perf_counter()
        handle(system, body)
        wall.append(time.perf_counter() - began)
        own.append(wall[-1] - (table.spent + queues.spent - before))
    return {
        "events_per_second": round(events / sum(wall)),
        "own_p50_ms": round(1000 * statistics.median(own), 3),
        "own_p99_ms": round(1000 * statistics.quantiles(own, n=100)[98], 3),
        "with_storage_p50_ms": round(1000 * statistics.median(wall), 2),
        "with_storage_p99_ms": round(1000 * statistics.quantiles(wall, n=100)[98], 2),
    }


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK} events").parse_args(argv)
    events = QUICK if asked.quick else EVENTS
    with tempfile.TemporaryDirectory() as home, azurite.start(Path(home)) as storage:
        result = measure(storage.connection_string, events)
    if asked.json:
        print(json.dumps(result))
        return
    print(f"drop handler, {events} events of one drop, one at a time")
    for name, value in result.items():
        print(f"  {name:22} {value}")


if __name__ == "__main__":
    main(sys.argv[1:])
