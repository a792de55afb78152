"""Published sweeps: MLClient loads the YAML, submits the sweep, follows it and downloads the best trial's outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.azureml.clouds import Cloud
from emulators.process import wait_for

pytestmark = pytest.mark.filterwarnings("ignore")

SWEEP = """
type: sweep
experiment_name: parabola
trial:
  code: ./src
  environment: azureml:AzureML-local@latest
  command: >-
    python trial.py ${{search_space.x}} ${{search_space.kind}} ${{inputs.offset}} ${{outputs.model}}
inputs:
  offset: 2
outputs:
  model: {type: uri_folder}
compute: azureml:cpu-cluster
sampling_algorithm: {type: random, rule: sobol, seed: 7}
search_space:
  x: {type: uniform, min_value: -4, max_value: 4}
  kind: {type: choice, values: [plain, fancy]}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 5, max_concurrent_trials: 2, timeout: 3600, trial_timeout: 600}
"""
SAMPLING = "sampling_algorithm: {type: random, rule: sobol, seed: 7}"
# Metrics by MLflow's REST calls, because its package takes ten seconds to import. test_tracking uses the package.
TRIAL = """
import json, os, pathlib, ssl, sys, time, urllib.request
x, kind, offset, model = sys.argv[1:]

def log(value, step):
    body = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": value, "step": step,
            "timestamp": int(time.time() * 1000) + step}
    request = urllib.request.Request(
        os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"})
    context = ssl.create_default_context(cafile=os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"])
    urllib.request.urlopen(request, context=context, timeout=200)

loss = (float(x) - float(offset)) ** 2
for step in range(2):
    log(loss + 1 - step, step)
pathlib.Path(model, "x.txt").write_text(x)
if os.environ.get("SLOW") and loss > 4:
    time.sleep(300)
"""


@pytest.fixture
def submit(ml: Any, tmp_path: Path) -> Callable[[str], Any]:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "trial.py").write_text(TRIAL)

    def load_and_submit(text: str) -> Any:
        from azure.ai.ml import load_job

        (tmp_path / "sweep.yml").write_text(text)
        return ml.jobs.create_or_update(load_job(tmp_path / "sweep.yml"))

    return load_and_submit


def values(trial: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trial.properties["hyperparameters"])
    return found


@pytest.mark.usefixtures("contract")
def test_a_published_sweep_finds_its_best_trial(
    ml: Any, cloud: Cloud, submit: Callable[[str], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each trial is a job with its own values. The sweep names its best trial, whose outputs are the sweep's."""
    sweep = submit(SWEEP)
    ml.jobs.stream(sweep.name)
    assert "The best is trial" in capsys.readouterr().out
    trials = list(ml.jobs.list(parent_job_name=sweep.name))
    assert {trial.name for trial in trials} == {f"{sweep.name}_{number}" for number in range(5)}
    best = min(trials, key=lambda trial: (values(trial)["x"] - 2) ** 2)
    done = ml.jobs.get(sweep.name)
    assert done.status == "Completed"
    assert done.properties["best_child_run_id"] == best.name
    assert float(done.properties["score"]) == pytest.approx((values(best)["x"] - 2) ** 2)
    ml.jobs.download(sweep.name, download_path=tmp_path / "got", output_name="model")
    found = next((tmp_path / "got").rglob("x.txt")).read_text()
    assert float(found) == pytest.approx(values(best)["x"])


def test_a_policy_ends_trials_that_lag(ml: Any, cloud: Cloud, submit: Callable[[str], Any]) -> None:
    """Bandit cancels trials that are too far from the best at the same interval, with a message. The sweep
    completes."""
    text = SWEEP.replace("python trial.py", "SLOW=1 python trial.py").replace(SAMPLING, "sampling_algorithm: grid")
    text = text.replace("{type: uniform, min_value: -4, max_value: 4}", "{type: choice, values: [2, -4]}")
    text = text.replace("[plain, fancy]", "[plain]").replace("concurrent_trials: 2", "concurrent_trials: 1")
    text += "early_termination: {type: bandit, slack_amount: 4, evaluation_interval: 2}\n"
    text += "name: laggards\n"  # the name determines the order of the grid: x=2 is first
    sweep = submit(text)
    assert cloud.wait(sweep.name, timeout=180)["status"] == "Completed"
    trials = {values(trial)["x"]: trial for trial in ml.jobs.list(parent_job_name=sweep.name)}
    assert {x: trial.status for x, trial in trials.items()} == {2: "Completed", -4: "Canceled"}
    assert "by the policy bandit at interval 2" in cloud.details(trials[-4].name)["error"]["error"]["message"]


def test_a_sweep_that_never_tells_its_metric_says_so(cloud: Cloud, submit: Callable[[str], Any]) -> None:
    """If no trial logs the primary metric, the sweep has no best trial and an error that names the metric."""
    sweep = submit(
        SWEEP.replace("primary_metric: loss", "primary_metric: los").replace("total_trials: 5", "total_trials: 2")
    )
    assert cloud.wait(sweep.name, timeout=120)["status"] == "Failed"
    assert "primary metric 'los'" in cloud.details(sweep.name)["error"]["error"]["message"]


def test_cancel_ends_the_trials(ml: Any, cloud: Cloud, submit: Callable[[str], Any]) -> None:
    """begin_cancel on a sweep cancels the trials and starts no other."""
    sweep = submit(SWEEP.replace("python trial.py", "sleep 300; python trial.py"))
    wait_for(lambda: len(list(ml.jobs.list(parent_job_name=sweep.name))) == 2, 60, "two trials")
    ml.jobs.begin_cancel(sweep.name).result()
    assert {trial.status for trial in ml.jobs.list(parent_job_name=sweep.name)} == {"Canceled"}
    assert len(list(ml.jobs.list(parent_job_name=sweep.name))) == 2


def test_a_timeout_ends_the_sweep(cloud: Cloud) -> None:
    """limits.timeout cancels the sweep and its trials with a message. MLClient would round the timeout to a minute."""
    body = {
        "jobType": "Sweep",
        "trial": {"command": "echo ${{search_space.x}}; sleep 300", "environmentId": "azureml:AzureML-local@latest"},
        "computeId": f"{cloud.workspace}/computes/cpu-cluster",
        "searchSpace": {"x": ["uniform", [0, 1]]},
        "samplingAlgorithm": {"samplingAlgorithmType": "Random"},
        "objective": {"goal": "Minimize", "primaryMetric": "loss"},
        "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 2, "timeout": "PT2S"},
    }
    cloud.arm("PUT", "jobs/late-sweep", {"properties": body})
    assert cloud.wait("late-sweep")["status"] == "Canceled"
    assert "longer than its limit of PT2S" in cloud.details("late-sweep")["error"]["error"]["message"]
    assert {cloud.job(f"late-sweep_{number}")["status"] for number in range(2)} == {"Canceled"}


STEP = """
type: pipeline
compute: azureml:cpu-cluster
outputs: {best: {type: uri_folder}}
jobs:
  tune:
    type: sweep
    trial: ./trial.yml
    inputs: {offset: 1}
    outputs: {model: "${{parent.outputs.best}}"}
    search_space: {x: {type: choice, values: [1, 3]}}
    sampling_algorithm: grid
    objective: {goal: minimize, primary_metric: loss}
    limits: {max_total_trials: 4, max_concurrent_trials: 2}
  show:
    command: cat ${{inputs.model}}/x.txt
    environment: azureml:AzureML-local@latest
    inputs: {model: "${{parent.jobs.tune.outputs.model}}"}
"""
COMPONENT = """
type: command
name: trial
version: "1"
code: ./src
environment: azureml:AzureML-local@latest
inputs: {x: {type: number}, offset: {type: integer}}
outputs: {model: {type: uri_folder}}
command: python trial.py ${{inputs.x}} plain ${{inputs.offset}} ${{outputs.model}}
"""


def test_a_sweep_is_a_step_of_a_pipeline(ml: Any, cloud: Cloud, submit: Callable[[str], Any], tmp_path: Path) -> None:
    """The best trial's output is passed to the next step. A grid ends after its last combination, even below the
    limit."""
    (tmp_path / "trial.yml").write_text(COMPONENT)
    job = submit(STEP)
    assert cloud.wait(job.name, timeout=120)["status"] == "Completed", cloud.details(job.name)["error"]
    steps = {child.display_name: child.name for child in ml.jobs.list(parent_job_name=job.name)}
    assert cloud.log(steps["show"]).strip() == "1"
    assert len(list(ml.jobs.list(parent_job_name=steps["tune"]))) == 2
