"""The environment variables of a rank, without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from emulators.azureml.bodies import job_body
from emulators.azureml.environments.builder import JobEnvironment
from emulators.azureml.kernel.config import Config, parse
from emulators.azureml.kernel.models import Job
from emulators.azureml.running.variables import Gang, environment

PROPERTIES = {
    "jobType": "Command",
    "command": "python train.py",
    "environmentId": "azureml:trainer:3",
    "computeId": "x/computes/cpu",
    "experimentName": "digits",
    "resources": {"instanceCount": 2},
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 2},
}
HERE = JobEnvironment(Path(sys.prefix), {}, (), 0.0)
REQUIRED = {
    "certs": "c",
    "state": "s",
    "storage": {"connection_string": "UseDevelopmentStorage=true"},
    "python": sys.executable,
    "subscription_id": "sub",
    "resource_group": "group",
    "workspace": "ws",
}


@pytest.fixture
def config() -> Config:
    return parse(REQUIRED)


def test_the_members_of_an_elastic_run_share_the_processors(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that torchrun and PET_NNODES join to other jobs uses only its share of this machine's processors."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    alone = {key: value for key, value in PROPERTIES.items() if key not in ("resources", "distribution")}
    member = job_body.parse("m", {**alone, "environmentVariables": {"PET_NNODES": "1:4"}})
    gang = Gang(("n0",), (2345,), {}, HERE, "https://x", Path("/tmp/job"))
    assert environment(config, Job("m", 1, PROPERTIES, ""), member, gang, 0)["OMP_NUM_THREADS"] == "2"


def variables(config: Config, rank: int) -> dict[str, str]:
    paths = {"inputs.data": "/in", "outputs.models": "/out"}
    gang = Gang(("n0", "n1"), (2345, 2346, 2347, 2348), paths, HERE, "https://x", Path("/tmp/job"))
    return environment(config, Job("run-1", 1, PROPERTIES, ""), job_body.parse("run-1", PROPERTIES), gang, rank)


def test_threads_are_shared_out_unless_said_otherwise(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """OMP_NUM_THREADS is the number of processors divided by the ranks, at least one. A value set by the job is
    kept."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert variables(config, 0)["OMP_NUM_THREADS"] == "2"
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert variables(config, 0)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert variables(config, 0)["OMP_NUM_THREADS"] == "5"


def test_the_control_planes_own_environment_stays_outside(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job gets the paths of its inputs and outputs, but no secret and no setting of the control plane's process."""
    monkeypatch.setenv("AzureWebJobsStorage", "secret")
    seen = variables(config, 3)
    assert "secret" not in seen.values()
    assert (seen["AZURE_ML_INPUT_data"], seen["AZURE_ML_OUTPUT_models"]) == ("/in", "/out")
    assert (seen["RANK"], seen["NODE_RANK"], seen["AZ_BATCH_NODE_ID"]) == ("3", "1", "n1")
    assert (seen["AZUREML_ARM_SUBSCRIPTION"], seen["AZUREML_ARM_RESOURCEGROUP"]) == ("sub", "group")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, r"unknown configuration keys: \['colour'\]"),
        ({"clusters": [{"name": "x", "nodes": 2}]}, "unexpected keyword argument 'nodes'"),
        ({"storage": {}}, "lacks 'connection_string'"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    """The error has the name of the unknown or missing key."""
    with pytest.raises(ValueError, match=message):
        parse({**REQUIRED, **change})
    with pytest.raises(ValueError, match="workspace"):
        parse({key: value for key, value in REQUIRED.items() if key != "workspace"})
