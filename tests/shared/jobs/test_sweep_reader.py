"""Sweep jobs, as published and in short form: parsed, and written so that Microsoft's own SDK reads the same."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
import yaml

from shared.adapters.azureml.document import document
from shared.jobs.location import Asset
from shared.jobs.readers.azureml import read_job, read_layer
from shared.jobs.readers.expressions import command_text
from shared.jobs.readers.sweep import range_of
from shared.jobs.search import Parameter

# From Microsoft's azureml-examples: cli/jobs/single-step/scikit-learn/iris, and the reference of the YAML.
PUBLISHED = """
$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
trial:
  code: azureml:iris:1
  command: >-
    python main.py --iris-csv ${{inputs.iris_csv}} --C ${{search_space.C}} --kernel ${{search_space.kernel}}
    --coef0 ${{search_space.coef0}}
  environment: azureml:AzureML-sklearn-1.5@latest
inputs:
  iris_csv: {type: uri_file, path: "wasbs://datasets@azuremlexamples.blob.core.windows.net/iris.csv"}
compute: azureml:cpu-cluster
sampling_algorithm: random
search_space:
  C: {type: uniform, min_value: 0.5, max_value: 0.9}
  kernel: {type: choice, values: ["rbf", "linear", "poly"]}
  coef0: {type: uniform, min_value: 0.1, max_value: 1}
objective: {goal: minimize, primary_metric: training_f1_score}
limits: {max_total_trials: 20, max_concurrent_trials: 10, timeout: 7200, trial_timeout: 600}
early_termination: {type: bandit, slack_factor: 0.2, delay_evaluation: 10, evaluation_interval: 5}
display_name: sklearn-iris-sweep-example
experiment_name: sklearn-iris-sweep-example
description: Sweep hyperparameters for training a scikit-learn model on the Iris dataset.
"""


def changed(**keys: Any) -> dict[str, Any]:
    return {**yaml.safe_load(PUBLISHED), **keys}


def test_a_published_sweep_is_its_trials_job_and_a_search() -> None:
    """The trial's command has the searched values as inputs; everything else is the search."""
    job = read_job(yaml.safe_load(PUBLISHED))
    sweep = job.sweep
    assert sweep is not None
    assert (job.kind, job.cluster, job.timeout_seconds) == ("command", "cpu-cluster", 600)
    assert "--C ${{inputs.C}} --kernel ${{inputs.kernel}}" in command_text(job.command)
    assert (job.inputs["C"], job.inputs["kernel"]) == (0.5, "rbf")
    assert sweep.space["kernel"] == Parameter("choice", ("rbf", "linear", "poly"))
    assert (sweep.metric, sweep.maximize, sweep.sampling) == ("training_f1_score", False, "random")
    assert (sweep.most_trials, sweep.at_once, sweep.timeout_seconds) == (20, 10, 7200)
    assert sweep.stopping
    assert (sweep.stopping.kind, sweep.stopping.interval, sweep.stopping.delay) == ("bandit", 5, 10)


COMPONENT = """
type: command
name: train
version: "1"
is_deterministic: false
inputs:
  iris_csv: {type: uri_file}
  C: {type: number, default: 1}
  kernel: {type: string, default: rbf}
  coef0: {type: number}
  rounds: {type: integer, default: 3}
  note: {type: string, optional: true}
outputs:
  model: {type: uri_folder}
code: azureml:iris:1
environment: azureml:AzureML-sklearn-1.5@latest
command: >-
  python main.py --iris-csv ${{inputs.iris_csv}} --C ${{inputs.C}} --kernel ${{inputs.kernel}} --coef0
  ${{inputs.coef0}} --rounds ${{inputs.rounds}} $[[--note ${{inputs.note}}]] --out ${{outputs.model}}
"""


def test_a_trial_may_be_a_component() -> None:
    """The component's defaults are the trial's where nothing is searched or given, and its outputs are the job's. A
    part of its command for an input without a value is omitted."""
    job = read_job(changed(trial=yaml.safe_load(COMPONENT), outputs={"model": {"mode": "upload"}}))
    assert job.sweep
    assert (job.inputs["rounds"], job.inputs["C"], job.inputs["coef0"]) == (3, 0.5, 0.1)
    assert "--note" not in command_text(job.command)
    assert command_text(job.command).endswith("--rounds ${{inputs.rounds}}  --out ${{outputs.model}}")
    assert (job.outputs["model"].kind, job.outputs["model"].mode, job.code) == ("folder", "upload", Asset("iris:1"))
    assert read_job(document(job)) == job


SPACE = {
    "a": {"type": "quniform", "min_value": 1, "max_value": 9, "q": 2},
    "b": {"type": "loguniform", "min_value": -6, "max_value": -1},
    "c": {"type": "qloguniform", "min_value": 0, "max_value": 6, "q": 1},
    "d": {"type": "normal", "mu": 1, "sigma": 2},
    "e": {"type": "qlognormal", "mu": 1, "sigma": 2, "q": 0.5},
    "f": {"type": "randint", "upper": 5},
}


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"search_space": SPACE},
        {"sampling_algorithm": {"type": "random", "rule": "sobol", "seed": 7}},
        {"early_termination": {"type": "truncation_selection", "truncation_percentage": 20}},
        {"early_termination": {"type": "median_stopping", "delay_evaluation": 5}},
    ],
    ids=lambda keys: next(iter(keys), "as it is"),
)
def test_microsofts_sdk_reads_what_is_written(keys: dict[str, Any]) -> None:
    """azure.ai.ml and our own reader find the same in the written sweep as in the published one."""
    published = changed(**keys)
    job = read_job(published)
    written = document(job)
    assert read_job(written) == job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK's own
        from azure.ai.ml import load_job

        theirs, again = (load_job(io.StringIO(yaml.safe_dump(each)))._to_dict() for each in (published, written))
    for key in ("search_space", "objective", "limits", "early_termination", "sampling_algorithm", "compute", "type"):
        assert _plain(again.get(key)) == _plain(theirs.get(key)), key


def _plain(value: Any) -> Any:
    """Normalize a document: whole numbers as floats, no nulls, and one form of random sampling, of which the schema
    has two."""
    if value in ("random", {"type": "random"}):
        return "random"
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"search_space": {}}, "search_space is empty"),
        ({"search_space": {"x": {"type": "uniform", "min_value": 2, "max_value": 1}}}, "search_space.x.min_value is 2"),
        ({"search_space": {"x": {"type": "unifrom"}}}, "search_space.x.type is 'unifrom'; choose one of choice"),
        ({"objective": {"goal": "minimise", "primary_metric": "x"}}, "objective.goal is 'minimise'; choose one of"),
        ({"limits": {"max_total_trials": 5000}}, "limits.max_total_trials is 5000; use a whole number from 1 to 1000."),
        ({"sampling_algorithm": "grid"}, "search_space.C is a range, which has no grid"),
        (
            {"trial": "azureml:train:1"},
            "trial is 'azureml:train:1', a registered component. Trainyard runs each trial as a run of its own",
        ),
        (
            {"trial": "trial.yml"},
            "trial is 'trial.yml', which was not sent with the job: write it here, or send its file.",
        ),
        (
            {"trial": {"type": "command", "command": "x", "inputs": {"n": {"type": "integer"}}}},
            "trial inputs.n is missing",
        ),
    ],
)
def test_a_bad_sweep_says_what_is_wrong(keys: dict[str, Any], words: str) -> None:
    """The error has the key, the value and the choices."""
    layer = read_layer(changed(**keys))
    assert words in "; ".join(f"{problem.path} {problem.message}" for problem in layer.problems)


@pytest.mark.parametrize(
    ("text", "kind", "ends"),
    [
        ("0.001..0.1", "loguniform", (0.001, 0.1)),
        ("0.1..0.5", "uniform", (0.1, 0.5)),
        ("1..5", "quniform", (1, 5)),
        ("16..512", "qloguniform", (16, 512)),
        ("1e-5..1e-1", "loguniform", (1e-5, 0.1)),
        ("-1..1", "quniform", (-1, 1)),
        ("32,64,128", "choice", (32, 64, 128)),
        ("adam, sgd", "choice", ("adam", "sgd")),
        ("true,false", "choice", (True, False)),
    ],
)
def test_a_range_in_short(text: str, kind: str, ends: tuple[Any, ...]) -> None:
    """A range wider than a factor of ten is drawn on a log scale; whole ends give whole numbers."""
    parameter = range_of(text)
    assert parameter
    assert (parameter.kind, parameter.ends) == (kind, ends)


@pytest.mark.parametrize("text", ["0.1", "adam", "5..1", "1...5", 3, None, "a,"])
def test_a_value_is_no_range(text: Any) -> None:
    """A plain value of a parameter stays a value."""
    assert range_of(text) is None
