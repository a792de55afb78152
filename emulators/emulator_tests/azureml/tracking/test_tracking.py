"""The unmodified MLflow client logs, searches, registers and downloads at the workspace's advertised address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud

API = "/mlflow/v1.0{}/api/2.0/mlflow"
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's, scikit-learn's and the SDK's own

IN_A_JOB = """
import mlflow, pathlib
from sklearn.linear_model import Ridge
mlflow.sklearn.autolog(log_models=False)
with mlflow.start_run() as run:
    model = Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
    # log_model: 404, as in Azure. MLflow would start a second Python to find out the model's requirements.
    mlflow.sklearn.save_model(model, "model", serialization_format="cloudpickle", pip_requirements=["scikit-learn"])
    mlflow.log_artifacts("model", "model")
    mlflow.register_model(f"runs:/{run.info.run_id}/model", "doubles")
    mlflow.log_param("lr", 0.1)
    for step in range(3):
        mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
    pathlib.Path("note.txt").write_text("hello")
    mlflow.log_artifact("note.txt", "notes")
    mlflow.set_tag("done", "yes")
    print("RUN", run.info.run_id)
"""


@pytest.fixture(scope="module")
def mlflow(cloud: Cloud, ml: Any) -> Iterator[Any]:
    """MLflow as in a notebook, with the workspace's advertised address."""
    before = dict(os.environ)
    given = cloud.part.info["env"]
    os.environ.update({key: given[key] for key in ("REQUESTS_CA_BUNDLE", "MLFLOW_TRACKING_TOKEN")})
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow

    mlflow.set_tracking_uri(ml.workspaces.get("team").mlflow_tracking_uri)
    mlflow.set_registry_uri(mlflow.get_tracking_uri())
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri("")
    mlflow.set_registry_uri("")
    os.environ.clear()
    os.environ.update(before)


def test_a_job_logs_to_its_own_run(cloud: Cloud, mlflow: Any, tmp_path: Path) -> None:
    """In a job without any settings, MLflow's run is the job, with parameters, metrics, tags, files and the final
    status."""
    script = tmp_path / "train.py"
    script.write_text(IN_A_JOB)
    cloud.submit(
        "logs-to-mlflow", "cpu-cluster", f"{sys.executable} {script}", experimentName="curves", tags={"a": "b"}
    )
    assert cloud.wait("logs-to-mlflow", timeout=240)["status"] == "Completed", cloud.log("logs-to-mlflow")
    run = mlflow.get_run("logs-to-mlflow")
    assert (run.data.params["lr"], run.data.params["alpha"]) == ("0.1", "0.5")
    assert run.data.metrics["loss"] == 1.0 / 3
    assert run.data.metrics["training_r2_score"] > 0.9
    assert (run.data.tags["a"], run.data.tags["done"], run.info.status) == ("b", "yes", "FINISHED")
    client = mlflow.MlflowClient()
    assert [m.value for m in client.get_metric_history("logs-to-mlflow", "loss")] == [1.0, 0.5, 1.0 / 3]
    listed = cloud.call("GET", f"{API.format(cloud.workspace)}/artifacts/list?run_id=logs-to-mlflow&path=notes").json()
    assert [file["path"] for file in listed["files"]] == ["notes/note.txt"]
    assert Path(client.download_artifacts("logs-to-mlflow", "notes/note.txt", str(tmp_path))).read_text() == "hello"
    assert "user_logs" in {f.path for f in client.list_artifacts("logs-to-mlflow")}
    own = f"{API.format(cloud.workspace)}/artifacts/list?run_id=logs-to-mlflow&path=model"
    assert "model/MLmodel" in {f["path"] for f in cloud.call("GET", own).json()["files"]}, "with the run's own files"


def test_azureml_mlflow_is_told_where_files_are(cloud: Cloud, mlflow: Any) -> None:
    """azureml-mlflow uses another API version and follows only https addresses. It gets the address of the files."""
    with mlflow.start_run() as run:
        mlflow.log_text("hello", "note.txt")
    path = f"{cloud.workspace}/api/2.0/mlflow/runs/get?run_id={run.info.run_id}"
    told = [cloud.call("GET", f"/mlflow/{v}{path}").json()["run"]["info"]["artifact_uri"] for v in ("v1.0", "v2.0")]
    assert told[0] == f"mlflow-artifacts:/ExperimentRun/dcid.{run.info.run_id}"
    assert cloud.call("GET", f"{told[1].removeprefix(cloud.url)}/note.txt").text == "hello"


def test_each_job_is_a_run(cloud: Cloud, mlflow: Any) -> None:
    """A search finds a job without MLflow under the job's experiment, with its status."""
    cloud.submit("quiet", "cpu-cluster", "exit 3", experimentName="quiet ones")
    cloud.wait("quiet")
    found = mlflow.search_runs(experiment_names=["quiet ones"], output_format="list")
    assert [(run.info.run_id, run.info.status) for run in found] == [("quiet", "FAILED")]
    with pytest.raises(mlflow.MlflowException, match="nobody"):
        mlflow.get_run("nobody")


def test_a_notebook_logs_and_searches(mlflow: Any, tmp_path: Path) -> None:
    """A notebook can create an experiment and runs, search by metric, and log a file of megabytes."""
    mlflow.set_experiment("by hand")
    (tmp_path / "big.bin").write_bytes(os.urandom(3_000_000))
    for rate in (0.1, 0.5):
        with mlflow.start_run(run_name=f"rate {rate}"):
            mlflow.log_params({"rate": rate})
            mlflow.log_metrics({"accuracy": 1 - rate})
            mlflow.log_artifact(str(tmp_path / "big.bin"))
    best = mlflow.search_runs(
        experiment_names=["by hand"], filter_string="metrics.accuracy > 0.6", output_format="list"
    )
    assert [run.info.run_name for run in best] == ["rate 0.1"]
    back = mlflow.artifacts.download_artifacts(run_id=best[0].info.run_id, artifact_path="big.bin")
    assert Path(back).read_bytes() == (tmp_path / "big.bin").read_bytes()


def test_registered_models_are_the_workspaces(ml: Any, mlflow: Any, tmp_path: Path) -> None:
    """MLClient lists, downloads and numbers models that MLflow registered, and MLflow loads models that MLClient
    registered."""
    from azure.ai.ml.entities import Model

    [listed] = ml.models.list(name="doubles")
    assert (listed.version, listed.type, listed.job_name) == ("1", "mlflow_model", "logs-to-mlflow")
    ml.models.download("doubles", version="1", download_path=str(tmp_path))
    [found] = tmp_path.rglob("MLmodel")
    second = ml.models.create_or_update(Model(name="doubles", path=str(found.parent), type="mlflow_model"))
    assert second.version == "2"
    assert mlflow.sklearn.load_model("models:/doubles/2").predict([[1.0]])[0] == pytest.approx(2.0)
    assert int(mlflow.register_model("models:/doubles/1", "doubles").version) == 3


def test_log_model_of_newer_clients_ends_in_404(mlflow: Any) -> None:
    """Azure ML has no logged models; https://github.com/Azure/azure-sdk-for-python/issues/44896 has the client's
    error. A training with autolog continues without the model and its final metrics."""
    from sklearn.linear_model import Ridge

    mlflow.set_experiment("models")
    mlflow.sklearn.autolog()
    with mlflow.start_run() as run:
        model = Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
        words = "API request to endpoint /api/2.0/mlflow/logged-models failed with error code 404 != 200."
        with pytest.raises(mlflow.MlflowException, match=words):
            mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
    mlflow.sklearn.autolog(disable=True)
    data = mlflow.get_run(run.info.run_id).data
    assert (data.params["alpha"], data.metrics) == ("0.5", {}), "autolog logs the metrics after the model"


def test_a_run_has_at_most_50_names_of_metrics(mlflow: Any) -> None:
    """The 51st metric name, the 201st parameter name and the 51st tag are refused in Azure's words. Existing names
    are not counted again."""
    mlflow.set_experiment("limits")
    refused = "A field of the entity is over the size limit. FieldName={}, Limit={}, Size={}. See https://aka.ms/azure-"
    with mlflow.start_run():
        mlflow.log_metrics({f"m{number}": 1.0 for number in range(50)})
        mlflow.log_metrics({f"m{number}": 0.5 for number in range(50)}, step=1)
        with pytest.raises(mlflow.MlflowException, match=refused.format("Metrics", 50, 51)):
            mlflow.log_metric("one_more", 1.0)
        mlflow.log_params({f"p{number}": 1 for number in range(100)})
        with pytest.raises(mlflow.MlflowException, match=refused.format("Parameters", 200, 201)):
            mlflow.log_params({f"q{number}": 1 for number in range(101)})
        with pytest.raises(mlflow.MlflowException, match=refused.format("RunDto.Tags/Count", 50, 51)):
            mlflow.set_tags({f"t{number}": "" for number in range(51)})


def test_a_stranger_and_a_wrong_path_are_refused(cloud: Cloud) -> None:
    """MLflow's routes require a token, and artifacts can only be in the workspace's own folders."""
    base = f"/mlflow/v1.0{cloud.workspace}/api/2.0"
    assert cloud.call("GET", f"{base}/mlflow/experiments/search", headers={}).status_code == 401
    for path in ("snapshots/x", "ExperimentRun/%2e%2e/x", "datastores/drops/x"):
        answer = cloud.call("PUT", f"{base}/mlflow-artifacts/artifacts/{path}", data=b"x")
        assert (answer.status_code, "error_code" in answer.json()) == (400, True)


def test_mlflow_that_is_missing_is_said(tmp_path: Path) -> None:
    """Without MLflow's packages the answer is a 501 that says how to install them."""
    code = (
        "import asyncio, sys, types\n"
        "sys.modules['flask'] = None\n"
        "from pathlib import Path\n"
        "from emulators.azureml.tracking.tracking import Tracking\n"
        "asyncio.run(Tracking(None, Path('.')).ask('GET', '/', '', b''))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ArmError: MLflow's server needs flask" in ran.stderr
    assert "pip install 'azure-emulators[mlflow]'" in ran.stderr
