"""A drop becomes one job even if its events arrive three times and out of order."""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from emulators import process
from local.cloud import Cloud, Options

BLOBS = int(os.environ.get("TRAINYARD_TEST_BLOBS", "300"))
ROUTES = "routes: {noop: {template: noop.yaml, cluster: cpu-cluster, quiet_seconds: 3600}}\n"
TEMPLATE = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/x/}}
"""

DIRECT = {"AzureWebJobs.drop_event.Disabled": "false"}  # infra/ disables this trigger, because events come by queue


def ask(cloud: Cloud, url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "Authorization": "Bearer any"})
    context = ssl.create_default_context(cafile=str(cloud.certs))
    with urllib.request.urlopen(request, timeout=400, context=context) as response:
        return json.load(response)


@contextmanager
def direct_delivery(cloud: Cloud, home: Path) -> Iterator[str]:
    """An Event Grid beside the cloud's own that calls the direct trigger. Returns its URL.

    The queue is not used: tests/e2e/test_paths.py covers it, and its handler makes the same call.
    """
    endpoint = f"{cloud.api.removesuffix('/api')}/runtime/webhooks/EventGrid?functionName=drop_event"
    config = {
        "host": "127.0.0.1",
        "port": 0,
        "certs": str(cloud.home / "certs"),
        "state": str(home / "direct"),
        "storage": {
            "connection_string": cloud.connection_string,
            "access_log": str(cloud.home / "storage" / "blobs.log"),
        },
        "topics": [{"name": "storage", "resource": "/subscriptions/s", "source": "storage"}],
        "subscriptions": [
            {
                "name": "direct",
                "topic": "storage",
                "eventDeliverySchema": "EventGridSchema",
                "destination": {"endpointType": "WebHook", "properties": {"endpointUrl": endpoint}},
                "filter": {"subjectBeginsWith": "/blobServices/default/containers/drops/blobs/"},
            }
        ],
    }
    (home / "direct.json").write_text(json.dumps(config))
    argv = [sys.executable, "-m", "emulators.eventgrid", "--config", str(home / "direct.json")]
    part = process.start("direct", argv, log=home / "direct.log")
    try:
        yield part.info["url"]
    finally:
        part.stop()


def upload(cloud: Cloud) -> None:
    with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: drops.upload_blob(f"noop/big/{n:05}.bin", b"%d" % n), range(BLOBS - 1)))
        drops.upload_blob("noop/big/_SUCCESS", b"")


@pytest.mark.timeout(600)
def test_blobs_told_of_thrice_and_shuffled_are_one_run_and_one_job(tmp_path: Path) -> None:
    """300 blobs, every event delivered three times in any order, make one generation, one run and one job."""
    (tmp_path / "routes.yaml").write_text(ROUTES)
    (tmp_path / "noop.yaml").write_text(TEMPLATE)
    with (
        Cloud.start(tmp_path / "cloud", Options(routes=tmp_path / "routes.yaml", app_env=DIRECT)) as cloud,
        direct_delivery(cloud, tmp_path) as grid,
    ):
        ask(cloud, f"{cloud.eventgrid}/control/faults", {"lose": 1.0, "event_types": ["Microsoft.Storage.BlobCreated"]})
        ask(cloud, f"{grid}/control/faults", {"duplicate": 3, "shuffle": True, "seed": 1})
        upload(cloud)
        counts = ask(cloud, f"{grid}/control/barrier?timeout=360")
        run = process.wait_for(lambda: the_archived_run(cloud), 120, "the run to be archived", every=0.5)
        drop = process.wait_for(lambda: the_sealed_drop(cloud), 60, "late events to be recognised", every=0.5)
        jobs = ask(cloud, f"{cloud.azureml}{cloud.record.workspace_id}/jobs?api-version=2024-04-01")["value"]

    assert run["state"] == "completed", run["reason"]
    assert counts["delivered"] == 3 * BLOBS
    assert (drop["blobs"], drop["generation"], drop["state"]) == (BLOBS, 1, "sealed")
    assert [job["name"] for job in jobs] == [run["run"]] == [drop["run"]]


def the_archived_run(cloud: Cloud) -> Any:
    runs = ask(cloud, f"{cloud.api}/runs")
    runs = runs["runs"] if isinstance(runs, dict) else runs
    assert len(runs) <= 1
    return runs[0] if runs and runs[0]["archived_at"] else None


def the_sealed_drop(cloud: Cloud) -> Any:
    (drop,) = ask(cloud, f"{cloud.api}/drops")
    return drop if drop["state"] == "sealed" else None
