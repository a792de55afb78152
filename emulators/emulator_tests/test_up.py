"""All emulators together, started without the rest of this repository."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import emulators
from emulator_tests.azureml.clouds import gone
from emulator_tests.places import PROJECT
from emulators.__main__ import cluster, main
from emulators.process import PartFailed, heed_ctrl_c, wait_for
from emulators.up import Options, start

EMULATORS = Path(emulators.__file__).parent
READY_SECONDS = 60.0  # on a machine that does much else
ARRIVALS: dict[str, Any] = {
    "name": "arrivals",
    "topic": "storage",
    "destination": {"endpointType": "StorageQueue", "properties": {"queueName": "arrivals"}},
}


def up(home: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "emulators", "up", "--home", str(home), "--json", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)


def ready(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout
    answer: dict[str, Any] = json.loads(child.stdout.readline())
    assert answer["ready"]
    return answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulators")


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[dict[str, Any]]:
    """All emulators, started with the command, and a subscription to blob events."""
    config = home / "more.json"
    config.write_text(json.dumps({"eventgrid": {"subscriptions": [ARRIVALS]}}))
    child = up(home, "--config", str(config), "--cluster", "gpu-cluster=2")
    try:
        yield ready(child)
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode == 0


def test_a_job_runs_and_events_come(running: dict[str, Any], capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """Clients need only the output of `env`: a job runs on the named cluster, and a blob's event is delivered."""
    assert main(["env", "--home", str(home)]) == 0
    printed = subprocess.run(
        ["sh", "-c", 'eval "$(cat)"; env'], input=capsys.readouterr().out, capture_output=True, text=True, check=True
    ).stdout
    env = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    body = {"jobType": "Command", "command": "echo hello", "environmentId": "azureml:AzureML-local:1"}
    body["computeId"] = f"{running['workspace_id']}/computes/gpu-cluster"
    url = f"{running['azureml']}{running['workspace_id']}/jobs/first?api-version=2024-04-01"
    given: dict[str, Any] = {
        "headers": {"Authorization": f"Bearer {env['MLFLOW_TRACKING_TOKEN']}"},
        "verify": env["REQUESTS_CA_BUNDLE"],
    }
    assert requests.put(url, json={"properties": body}, timeout=30, **given).status_code == 201

    def ended() -> bool:
        return bool(requests.get(url, timeout=30, **given).json()["properties"]["status"] == "Completed")

    text = env["AZURE_STORAGE_CONNECTION_STRING"]
    with (
        QueueServiceClient.from_connection_string(text) as queues,
        BlobServiceClient.from_connection_string(text) as blobs,
    ):
        arrivals = queues.get_queue_client("arrivals")  # which the subscription made
        blobs.create_container("box").upload_blob("a.txt", b"x")
        wait_for(ended, READY_SECONDS, "the job to end")
        wait_for(lambda: list(arrivals.peek_messages()), READY_SECONDS, "the blob's event")


def test_addresses_and_state_stay(tmp_path: Path) -> None:
    """A second start in the same folder has the same addresses and state. A stop leaves no process."""
    with start(tmp_path, Options(workspace="kept")) as first:
        record = first.record
        pids = [part.process.pid for part in first.parts.values()]
        with BlobServiceClient.from_connection_string(first.connection_string) as blobs:
            blobs.create_container("box")
    assert all(gone(pid) for pid in pids)
    with start(tmp_path, Options(workspace="kept")) as second:
        assert {**second.record, "env": None} == {**record, "env": None}
        with BlobServiceClient.from_connection_string(second.connection_string) as blobs:
            assert "box" in {container.name for container in blobs.list_containers()}


def test_the_readmes_fixture_serves_other_repositories(tmp_path: Path) -> None:
    """The README's fixture and test pass without the rest of this repository."""
    (tmp_path / "emulators").symlink_to(EMULATORS)
    readme = (PROJECT / "README.md").read_text("utf-8")
    (block,) = [block for block in readme.split("```") if "emulators.testing" in block]
    (tmp_path / "test_mine.py").write_text(block.removeprefix("python"))
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""}
    done = subprocess.run([*command, "test_mine.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_part_that_does_not_start_stops_all(tmp_path: Path) -> None:
    """A configuration that a part refuses is an error with a reason, and no part keeps running."""
    with pytest.raises(PartFailed, match="unknown configuration keys: \\['colour'\\]"):
        start(tmp_path, Options(more={"azureml": {"colour": "red"}}))
    assert main(["env", "--home", str(tmp_path)]) == 1


@pytest.mark.parametrize("text", ["gpu", "=2", "gpu=many"])
def test_clusters_are_name_and_number(text: str) -> None:
    """`--cluster` requires NAME=NODES, and the error for any other text explains it."""
    with pytest.raises(Exception, match="is not NAME=NODES"):
        cluster(text)
