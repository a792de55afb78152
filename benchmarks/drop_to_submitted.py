"""From the marker's upload to the job at Azure ML, through the whole local cloud. Target: sealed to accepted p95 < 2 s.

    python3 trainyard.py bench drop_to_submitted [--quick] [--json]

Each drop is two small files and _SUCCESS, and its job does nothing. Drops follow one another. The first drop pays for
the import of azure-ai-ml and is reported separately.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from benchmarks._options import options
from emulators import process
from local.cloud import Cloud, Options

DROPS, QUICK = 30, 3
ROUTES = "routes: {noop: {template: noop.yaml, cluster: cpu-cluster}}\n"
TEMPLATE = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/x/}}
outputs: {models: {type: uri_folder}}
"""


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def submitted_run(api: str, drop: str) -> Any:
    """Return the run of the drop once its job is at Azure ML; until then None."""
    runs = (run for run in get(f"{api}/runs?limit=5&details=true")["runs"] if run["drop"] == drop)
    return next((run for run in runs if any(m["state"] != "received" for m in run["history"])), None)


def drop_one(cloud: Cloud, container: ContainerClient, number: int) -> tuple[float, float]:
    """Return the seconds from the marker's upload, and from the sealing, until the job is accepted."""
    name = f"noop/{number:03}"
    for file in ("1.bin", "2.bin"):
        container.upload_blob(f"{name}/{file}", file.encode())
    marked = time.time()
    container.upload_blob(f"{name}/_SUCCESS", b"")
    run = process.wait_for(lambda: submitted_run(cloud.api, name), 60, f"the job of {name}")
    sealed, accepted = (datetime.fromisoformat(moment["at"]).timestamp() for moment in run["history"][:2])
    return accepted - marked, accepted - sealed


def spread(samples: list[float]) -> dict[str, float]:
    return {"p50_s": round(statistics.median(samples), 2), "p95_s": round(statistics.quantiles(samples, n=20)[18], 2)}


def measure(home: Path, drops: int) -> dict[str, Any]:
    (home / "routes.yaml").write_text(ROUTES)
    (home / "noop.yaml").write_text(TEMPLATE)
    options = Options(routes=home / "routes.yaml", idle_seconds=60)
    with (
        Cloud.start(home / "cloud", options) as cloud,
        ContainerClient.from_connection_string(cloud.connection_string, "drops") as container,
    ):
        first, *rest = [drop_one(cloud, container, number) for number in range(drops + 1)]
    return {
        "first_marker_to_accepted_s": round(first[0], 2),
        "marker_to_accepted": spread([sample[0] for sample in rest]),
        "sealed_to_accepted": spread([sample[1] for sample in rest]),
    }


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK} drops").parse_args(argv)
    drops = QUICK if asked.quick else DROPS
    with tempfile.TemporaryDirectory() as home:
        result = measure(Path(home), drops)
    if asked.json:
        print(json.dumps(result))
        return
    print(f"drop to submitted, {drops} drops one after the other")
    for name, value in result.items():
        print(f"  {name:28} {value}")


if __name__ == "__main__":
    main(sys.argv[1:])
