"""The adapter that reads a run's logged metrics, on a real local Azure ML with MLflow's own server and client."""

from __future__ import annotations

from typing import Any

import pytest

from shared.adapters.azureml import mlflow as adapter
from shared.adapters.azureml.arm import Arm
from shared.adapters.azureml.circuit import Circuit
from tests.contract.wire import LocalAzureML

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own warnings


@pytest.fixture
def run(azureml: LocalAzureML, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that has logged three points of a metric."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", azureml.part.info["env"]["MLFLOW_TRACKING_TOKEN"])
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    where = f"{azureml.part.info['url']}/mlflow/v1.0{azureml.part.info['workspace_id']}"
    client = mlflow.MlflowClient(where, where)
    made: Any = client.create_run("0")
    for step in range(3):
        client.log_metric(made.info.run_id, "loss", 1.0 / (step + 1), step=step)
    return str(made.info.run_id)


def test_the_client_reads_what_was_logged(azureml: LocalAzureML, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter reads each metric's points over REST, page by page, and nothing for an unknown run."""
    from azure.identity import DefaultAzureCredential

    monkeypatch.setattr(adapter, "PAGE", 2)
    arm = Arm(azureml.workspace, DefaultAzureCredential(), Circuit("test"))
    found = adapter.logged(arm, run)
    assert [(step, value) for step, value, _ in found["loss"]] == [(0.0, 1.0), (1.0, 0.5), (2.0, 1 / 3)]
    assert adapter.logged(arm, "nobody") == {}
