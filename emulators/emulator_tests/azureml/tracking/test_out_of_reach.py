"""A job that can't reach MLflow's server has the reason in its log."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator_tests.azureml.clouds import Cloud
from emulators.process import wait_for

# The requests of MLflow's client, without its import of ten seconds.
LOGS = """
import json, os, ssl, time, urllib.request
body = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": 1, "timestamp": int(time.time() * 1000)}
request = urllib.request.Request(
    os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"})
context = ssl.create_default_context(cafile=os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"])
print("logged", urllib.request.urlopen(request, context=context).status)
"""


@pytest.fixture
def command(tmp_path: Path) -> str:
    script = tmp_path / "logs.py"
    script.write_text(LOGS)
    return f"{sys.executable} {script}"


def test_a_server_that_does_not_start_is_told(own_cloud: Callable[..., Cloud], command: str) -> None:
    """The log of the requesting job has the last output of the failed server."""
    cloud = own_cloud()
    (cloud.config.parent / "state" / "mlflow.sqlite").mkdir()  # the path of MLflow's database
    cloud.submit("in-vain", "cpu-cluster", command)
    assert cloud.wait("in-vain", timeout=180)["status"] == "Failed"
    assert "[azureml] MLflow can't be reached, so this is not logged: MLflow's server does not start" in cloud.log(
        "in-vain"
    )


def tracking_server(cloud: Cloud) -> int:
    """Return the process of MLflow's server, a child of the control plane."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_text()
        except OSError:
            continue
        if int(words[1]) == cloud.part.process.pid and "emulators.tracking" in command:
            return int(status.parent.name)
    raise AssertionError("there is no tracking server")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_server_that_hangs_is_told_within_a_minute(own_cloud: Callable[..., Cloud], command: str) -> None:
    """A job that waits for the server logs the reason, and continues once the server answers."""
    cloud = own_cloud()
    cloud.submit("first", "cpu-cluster", command)
    assert cloud.wait("first", timeout=180)["status"] == "Completed", cloud.log("first")
    server = tracking_server(cloud)
    os.kill(server, signal.SIGSTOP)
    try:
        cloud.submit("waits", "cpu-cluster", command)
        cloud.wait("waits", "Running")
        words = "[azureml] MLflow's tracking server has not answered for 20 s; this job waits for it."
        wait_for(lambda: words in cloud.log("waits"), 60, "the log to say so")
    finally:
        os.kill(server, signal.SIGCONT)
    assert cloud.wait("waits")["status"] == "Completed"
    assert "logged 200" in cloud.log("waits")
