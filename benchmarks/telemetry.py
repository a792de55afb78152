"""The export to Application Insights: records, spans, metrics and bytes of a start, a drop and an idle hour.

    python3 trainyard.py bench telemetry [--quick] [--json]

The local cloud's host and worker log and export what Microsoft's host and worker do (emulators/host/exporting.py lists
the omissions), to a local ingestion endpoint. The idle hour is extrapolated: twelve pairs of the timers' calls, the
mean of the measured pairs, and sixty times the measured idle minute. The pairs are called through /admin, not by the
clock. Metrics are exported every five seconds instead of once a minute, with at least two exports between two pairs, so
a pair has as many as in Azure. Bytes are those of the items as JSON, which Azure bills.

Targets: at most 20 records and spans for a start, 40 for a drop, 100 for an idle hour.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from benchmarks._options import options
from benchmarks.scaling.cloud import Plan, ScaleCloud, running
from emulators.insights import Ingestion, ingestion
from emulators.process import wait_for
from shared.kernel import places
from shared.runs.ports import RunFilter

NEVER = "0 0 0 1 1 *"
PAIRS, QUICK_PAIRS = 6, 2
IDLE_SECONDS, QUICK_SECONDS = 120.0, 20.0
EXPORTED_SECONDS = 16.0  # until everything is exported: batches of spans and records wait five seconds
TIMERS = ("reconcile_timer", "scaling_timer")
PAIRS_AN_HOUR = 12
PATIENCE = 90.0
SETTINGS = {
    "PYTHON_ENABLE_OPENTELEMETRY": "false",
    "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",  # sent to Microsoft, and not part of the account's data
    "OTEL_METRIC_EXPORT_INTERVAL": "5000",
    "AzureFunctionsJobHost__extensions__queues__maxPollingInterval": "00:00:04",
}

Counts = dict[str, float]


def measure(home: Path, pairs: int, idle_seconds: float, settings: dict[str, str]) -> dict[str, Counts]:
    with ingestion() as taken:
        env = {**SETTINGS, **settings, "APPLICATIONINSIGHTS_CONNECTION_STRING": taken.connection_string}
        with running(
            home, Plan({"queued_seconds": 0.0, "running_seconds": 2.0}, reconcile=NEVER, app_env=env)
        ) as cloud:
            _drop(cloud, "before")  # registers the assets, and imports everything once
            _call_timers(cloud)
            found = {
                "start": _counted(taken, lambda: _start(cloud)),
                "drop": _counted(taken, lambda: _drop(cloud, "a")),
            }
            begun = [_counted(taken, lambda: _call_timers(cloud)) for _ in range(pairs)]
            minute = _counted(taken, lambda: time.sleep(idle_seconds))
    minutes = (idle_seconds + EXPORTED_SECONDS) / 60
    keys = {key for counts in (*begun, minute) for key in counts}
    pair = {key: sum(counts[key] for counts in begun) / pairs for key in keys}
    hour = {key: PAIRS_AN_HOUR * pair[key] + 60 * minute[key] / minutes for key in keys}
    return {**{name: dict(counts) for name, counts in found.items()}, "pair of timers": pair, "idle hour": hour}


def _counted(taken: Ingestion, act: Any) -> Counter[str]:
    """Return the counts of the items that are exported because of `act`."""
    time.sleep(EXPORTED_SECONDS)
    before = len(taken.items)
    act()
    time.sleep(EXPORTED_SECONDS)
    return taken.counts(before)


def _start(cloud: ScaleCloud) -> None:
    """Restart the host, and wait for its first answer."""
    cloud.restart_host()
    urllib.request.urlopen(f"{cloud.api}/health", timeout=30).read()


def _drop(cloud: ScaleCloud, name: str) -> None:
    """Upload a drop of one file and a marker, and wait until its run is archived."""
    with ContainerClient.from_connection_string(cloud.connection_string, places.DROPS_CONTAINER) as container:
        container.upload_blob(f"noop/{name}/1.bin", name.encode())
        container.upload_blob(f"noop/{name}/_SUCCESS", b"")
    runs = cloud.system().runs

    def archived() -> bool:
        return any(run.asked.drop == f"noop/{name}" and run.archive.at for run in runs.page(RunFilter(), 9).runs)

    wait_for(archived, PATIENCE, f"the archive of {name}", 0.3)


def _call_timers(cloud: ScaleCloud) -> None:
    base = cloud.api.removesuffix("/api")
    for timer in TIMERS:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{base}/admin/functions/{timer}", b'{"input": ""}', headers)
        urllib.request.urlopen(request, timeout=30).read()


def main(argv: list[str]) -> None:
    parser = options(__doc__, f"{QUICK_PAIRS} pairs of timers, and {QUICK_SECONDS:.0f} idle seconds")
    asked = parser.parse_args(argv)
    pairs, seconds = (QUICK_PAIRS, QUICK_SECONDS) if asked.quick else (PAIRS, IDLE_SECONDS)
    with tempfile.TemporaryDirectory() as home:
        found = measure(Path(home), pairs, seconds, {})
    if asked.json:
        print(json.dumps(found))
        return
    for name, counts in found.items():
        told = ", ".join(f"{counts.get(key, 0):,.0f} {key}" for key in ("records", "spans", "metrics", "bytes"))
        print(f"{name:15} {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
