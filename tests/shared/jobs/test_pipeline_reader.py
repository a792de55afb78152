"""Published pipelines: their steps are parsed, checked and filled in, and written as Microsoft's SDK reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from shared.adapters.azureml import pipelines, sdk_job
from shared.adapters.azureml.document import document
from shared.jobs.build import build
from shared.jobs.limits import Limits
from shared.jobs.location import Asset, Location
from shared.jobs.order import JobOrder
from shared.jobs.readers.azureml import read_job, read_layer
from shared.jobs.readers.pipeline import steps, with_steps
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import DataInput, JobSpec
from shared.jobs.upload import path, used

# In the form of Microsoft's azureml-examples: a component in the pipeline, an inline command, a registered component, a
# sweep, and a nested pipeline.
PUBLISHED = """
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: regression
experiment_name: regression
inputs:
  raw: {type: uri_folder, path: "azureml://datastores/d/paths/taxi/"}
  rounds: 3
outputs:
  model: {mode: upload}
settings: {default_compute: "azureml:cpu-cluster", continue_on_step_failure: false}
jobs:
  prepare:
    type: command
    component:
      type: command
      inputs: {raw: {type: uri_folder}}
      outputs: {clean: {type: uri_folder}}
      code: azureml:taxi:1
      environment: {image: "python:3.11"}
      command: python prep.py ${{inputs.raw}} ${{outputs.clean}}
      resources: {instance_count: 2}
    inputs: {raw: "${{parent.inputs.raw}}"}
    limits: {timeout: 60}
  tune:
    type: sweep
    trial:
      type: command
      inputs: {data: {type: uri_folder}, lr: {type: number}}
      outputs: {model: {type: uri_folder}}
      environment: azureml:e:1
      command: python train.py ${{inputs.data}} ${{inputs.lr}} ${{outputs.model}}
    inputs: {data: "${{parent.jobs.prepare.outputs.clean}}"}
    outputs: {model: "${{parent.outputs.model}}"}
    search_space: {lr: {type: uniform, min_value: 0.01, max_value: 0.1}}
    sampling_algorithm: random
    objective: {goal: maximize, primary_metric: accuracy}
    limits: {max_total_trials: 2, max_concurrent_trials: 1}
  evaluate:
    type: command
    inputs: {model: "${{parent.jobs.tune.outputs.model}}", fixed: {type: uri_file, path: "azureml://datastores/d/paths/x"}}
    environment: azureml:e:1
    environment_variables: {SEED: "7"}
    compute: azureml:gpu-cluster
    command: python test.py ${{inputs.model}} ${{inputs.fixed}}
"""


# A step whose task runs on mini-batches of its input, as in the examples of parallel jobs.
PARALLEL: dict[str, Any] = {
    "type": "parallel",
    "inputs": {"images": {"type": "uri_folder", "path": "azureml://datastores/d/paths/i/"}},
    "outputs": {"rows": {"type": "uri_file"}},
    "input_data": "${{inputs.images}}",
    "mini_batch_size": "5",
    "mini_batch_error_threshold": 5,
    "max_concurrency_per_instance": 2,
    "retry_settings": {"max_retries": 2, "timeout": 60},
    "resources": {"instance_count": 3},
    "environment_variables": {"SEED": "7"},
    "task": {
        "type": "run_function",
        "code": "azureml:scoring:1",
        "entry_script": "score.py",
        "program_arguments": "--top 3",
        "append_row_to": "${{outputs.rows}}",
        "environment": {"image": "python:3.11"},
    },
}


def parallel(**task: Any) -> dict[str, Any]:
    """Return the published pipeline with a parallel step whose task has other keys."""
    made = changed()
    made["jobs"]["score"] = {**PARALLEL, "task": {**PARALLEL["task"], **task}}
    return made


pytestmark = pytest.mark.filterwarnings("ignore")  # the SDK's own


def changed(step: str = "", without: str = "", **keys: Any) -> dict[str, Any]:
    """Return the published pipeline with other keys in a step or at the top."""
    made: dict[str, Any] = yaml.safe_load(PUBLISHED)
    (made["jobs"][step] if step else made).update(keys)
    if without:
        del made["jobs"][step][without]
    return made


def test_the_steps_are_read_as_jobs() -> None:
    """Each step has its own values and those of its component; the whole has the widest step's nodes and the
    cluster."""
    job = read_job(yaml.safe_load(PUBLISHED))
    assert (job.kind, job.cluster, job.nodes) == ("pipeline", "cpu-cluster", 2)
    prepare, tune, evaluate = steps(job)
    assert [(step.name, step.kind, sorted(step.needs)) for step in steps(job)] == [
        ("prepare", "command", []),
        ("tune", "sweep", ["prepare"]),
        ("evaluate", "command", ["tune"]),
    ]
    assert (prepare.job.code, prepare.job.nodes, prepare.job.timeout_seconds) == (Asset("taxi:1"), 2, 60)
    assert (tune.job.environment, str(tune.job.command)[:15]) == (Asset("e:1"), "python train.py")
    assert (evaluate.job.cluster, evaluate.job.variables) == ("gpu-cluster", {"SEED": "7"})
    assert evaluate.job.data == {"fixed": DataInput(Location("d", "x"), "file")}
    assert read_job(document(job)) == job


def test_what_the_system_fills_in_stands_where_azure_ml_reads_it() -> None:
    """Code, environment, variables and time limit of each step are where Microsoft's own SDK reads them."""
    job = replace(read_job(yaml.safe_load(PUBLISHED)), name="run-1", timeout_seconds=900, variables={"A": "b"})
    sent = pipelines.sendable(job, lambda each: each if isinstance(each, str) else "azureml:made:1", sdk_job.UNRESOLVED)
    theirs = sdk_job.load(sent, sdk_job.UNRESOLVED)._to_dict()["jobs"]
    component = theirs["prepare"]["component"]
    assert component["code"] == f"azureml:{sdk_job.UNRESOLVED}/codes/taxi/versions/1"
    assert (component["environment"], component["environment_variables"]) == ("azureml:made:1", {"A": "b"})
    assert [theirs[name]["limits"]["timeout"] for name in ("prepare", "evaluate")] == [60, 900]
    assert theirs["tune"]["limits"]["trial_timeout"] == 900
    assert theirs["evaluate"]["environment_variables"] == {"A": "b", "SEED": "7"}
    assert {name: step["display_name"] for name, step in sent["jobs"].items()} == {name: name for name in theirs}
    assert pipelines.problems(job) == []


def in_component(step: dict[str, Any]) -> dict[str, Any]:
    """The parallel step with its task in a component."""
    component = {"type": "parallel", "inputs": {"images": {"type": "uri_folder"}}, "outputs": step["outputs"]}
    component |= {key: step[key] for key in ("task", "input_data")}
    rest = {key: value for key, value in step.items() if key not in ("task", "input_data", "outputs")}
    return {**rest, "component": component}


@pytest.mark.parametrize("form", [lambda step: step, in_component])
def test_a_parallel_step_is_read_as_the_job_of_its_task(form: Any) -> None:
    """The task's code and environment are registered and written back into the task; the rest is sent as it was
    written."""
    step = form(PARALLEL)
    job = replace(read_job({"type": "pipeline", "compute": "azureml:c", "jobs": {"score": step}}), variables={"A": "b"})
    [read] = steps(job)
    assert (read.kind, read.job.nodes, read.job.code, str(read.job.command)) == (
        "parallel", 3, Asset("scoring:1"), "score.py --top 3",
    )  # fmt: skip
    assert pipelines.problems(job) == []
    sent = pipelines.sendable(job, lambda each: each if isinstance(each, str) else "azureml:made:1", sdk_job.UNRESOLVED)
    theirs = sdk_job.load(sent, sdk_job.UNRESOLVED)._to_dict()["jobs"]["score"]
    task = theirs["task"] if "task" in theirs else theirs["component"]["task"]
    assert task["code"].endswith("/codes/scoring/versions/1")
    assert (task["environment"], task["entry_script"], task["append_row_to"]) == (
        "azureml:made:1", "score.py", "${{outputs.rows}}",
    )  # fmt: skip
    assert theirs["environment_variables"] == {"A": "b", "SEED": "7"}
    assert (theirs["retry_settings"], theirs["max_concurrency_per_instance"]) == (PARALLEL["retry_settings"], 2)


def test_a_step_runs_where_the_pipelines_input_says() -> None:
    """`compute: ${{parent.inputs.NAME}}` is that input's text or its default, also inside a step that is a
    pipeline."""
    within: dict[str, Any] = {
        "inputs": {"where": {"type": "string", "default": "few"}},
        "jobs": {"x": {"compute": "${{parent.inputs.where}}"}},
    }
    jobs = {
        "one": {"compute": "${{ parent.inputs.big }}"},
        "two": {"type": "pipeline", "component": within, "inputs": {"where": "${{parent.inputs.big}}"}},
        "three": {"type": "pipeline", "component": within},
    }
    job = read_job({"type": "pipeline", "inputs": {"big": "azureml:many"}, "jobs": jobs})
    computes = {step.name: step.job.cluster for step in steps(job) if step.kind == "command"}
    assert computes == {"one": "many", "two.x": "many", "three.x": "few"}


def test_a_step_has_as_many_nodes_as_the_pipelines_input_says() -> None:
    """`instance_count: ${{parent.inputs.NAME}}` is that input's number; the pipeline is as wide as its widest step."""
    step = {"type": "parallel", "resources": {"instance_count": "${{parent.inputs.nodes}}"}}
    job = read_job({"type": "pipeline", "inputs": {"nodes": 3}, "jobs": {"score": step, "one": {"command": "x"}}})
    assert [each.job.nodes for each in steps(job)] == [3, 0]
    assert job.nodes == 3
    (problem,) = steps(read_job({"type": "pipeline", "jobs": {"score": step}}))[0].problems
    assert problem.path == "nodes"


def test_a_binding_that_the_sdk_refuses_at_the_submission_is_found_before() -> None:
    """An optional input of a pipeline component that a step requires is a problem of the pipeline."""
    step = {"type": "command", "environment": "azureml:e:1", "command": "ls ${{inputs.rows}}"}
    inner = {**step, "inputs": {"rows": {"type": "uri_folder"}}}
    within = {
        "type": "pipeline",
        "inputs": {"raw": {"type": "uri_folder", "optional": True}},
        "jobs": {"fit": {"type": "command", "component": inner, "inputs": {"rows": "${{parent.inputs.raw}}"}}},
    }
    rows = {"type": "uri_folder", "path": "azureml://datastores/d/paths/rows/"}
    outer = {"type": "pipeline", "component": within, "inputs": {"raw": rows}}
    pipeline = read_job({"type": "pipeline", "compute": "azureml:cpu-cluster", "jobs": {"outer": outer}})
    (problem,) = pipelines.problems(pipeline)
    assert "optional Input binding to required inputs: ['fit.inputs.rows']" in problem.message
    within["inputs"]["raw"]["optional"] = False  # type: ignore[index]
    assert pipelines.problems(read_job({"type": "pipeline", "compute": "azureml:c", "jobs": {"outer": outer}})) == []


def test_what_steps_use_is_the_jobs() -> None:
    """A folder that was uploaded for a step belongs to the whole job: the job waits for it and keeps it."""
    code = path("a" * 64)
    job = with_steps(read_job(yaml.safe_load(PUBLISHED)), lambda step: replace(step, code=code) if step.code else step)
    assert list(used(job)) == [("jobs.prepare.code", "a" * 64)]


NESTED: dict[str, Any] = {"type": "pipeline", "component": {"type": "pipeline", "jobs": {"x": {"type": "spark"}}}}
FLOW = {"component": {"$schema": "https://azuremlschemas.azureedge.net/promptflow/latest/Flow.schema.json"}}
EVIL: dict[str, Any] = {
    "type": "command",
    "command": "x",
    "environment": "azureml:e:1",
    "additional_includes": ["/etc"],
}


def whole(**keys: Any) -> dict[str, Any]:
    """Return a pipeline job that runs a pipeline component, in the form of azureml-examples' pipeline-job.yml."""
    component = {
        "type": "pipeline",
        "inputs": {
            "rows": {"type": "uri_folder"},
            "rate": {"type": "number", "default": 0.5},
            "extra": {"type": "uri_file", "optional": True},
        },
        "outputs": {"model": {"type": "mlflow_model"}},
        "jobs": {"fit": {"command": "x", "environment": "azureml:e:1"}},
    }
    return {"type": "pipeline", "component": component, "outputs": {"model": {"mode": "upload"}}, **keys}


def test_a_pipeline_may_run_a_pipeline_component() -> None:
    """The job has the component's steps, the defaults of its inputs, and the types of its outputs."""
    job = read_job(whole(inputs={"rows": {"type": "uri_folder", "path": "azureml:rows:1"}}))
    assert [step.name for step in steps(job)] == ["fit"]
    assert job.inputs["rate"] == 0.5
    assert "extra" not in job.inputs
    assert document(job)["outputs"] == {"model": {"type": "mlflow_model", "mode": "upload"}}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed(jobs={}), "jobs must be a mapping from names to steps; a pipeline has at least one step."),
        (changed("evaluate", without="environment"), "jobs.evaluate.environment is missing; each step, or its"),
        (changed("tune", type="parallel"), "jobs.tune.task.entry_script is missing"),
        (parallel(environment=None), "jobs.score.task.environment is missing"),
        (parallel(code="./src"), "jobs.score.code must be a registered asset"),
        (parallel(program_arguments="${{inputs.no}}"), "jobs.score.task uses ${{inputs.no}}, which the step does not"),
        (changed("tune", type="spark"), "jobs.tune.type is 'spark'; a step is a command, a sweep, a parallel job or a"),
        (changed("evaluate", **FLOW, without="command"), "jobs.evaluate.component is a prompt flow, which Trainyard"),
        (changed("tune", type="automl"), "make it a command step that trains."),
        (changed("tune", **NESTED, without="trial"), "jobs.tune.x.type is 'spark'"),
        (changed("evaluate", compute="azureml:other"), "jobs.evaluate.compute is 'other'; choose one of cpu-cluster"),
        (changed("evaluate", resources={"instance_count": 9}), "jobs.evaluate.resources.instance_count is 9; use a"),
        (changed("evaluate", code="./src"), "jobs.evaluate.code must be a registered asset"),
        (changed("evaluate", code=place_text(path("a" * 64))), "jobs.evaluate.code of your own is not allowed here"),
        (changed("evaluate", identity={"type": "user_identity"}), "jobs.evaluate.identity is not allowed here"),
        (changed("evaluate", services={"a": {"type": "ssh"}}), "jobs.evaluate.services is not allowed here"),
        (changed("evaluate", without="command"), "jobs.evaluate.command is missing, and the step names no component."),
        (changed("evaluate", inputs={"a": "${{parent.jobs.no.outputs.x}}"}), "jobs.evaluate.inputs need step 'no'"),
        (changed("prepare", inputs={"a": "${{parent.jobs.tune.outputs.model}}"}), "wait for each other in a circle: "),
        (changed("prepare", component="./prep.yml"), "jobs.prepare.component './prep.yml' is a file that was not sent"),
        (changed("prepare", code="azureml:c:1"), "jobs.prepare.component and code both define what the step runs"),
        (changed("evaluate", **EVIL), "jobs.evaluate.additional_includes are files beside the job"),
        (changed("evaluate", command="x", inputs={"a": {"path": "/etc/passwd"}}), "inputs.a.path '/etc/passwd' is on"),
        (
            changed("evaluate", inputs={"model": "${{jobs.tune.outputs.model}}"}),
            "jobs.evaluate.inputs.model is '${{jobs.tune.outputs.model}}'; write ${{parent.jobs.tune.outputs.model}}.",
        ),
        (changed("evaluate", command="x ${{inputs.modle}}"), "jobs.evaluate.command uses ${{inputs.modle}}, which"),
        (changed(component="./whole.yml"), "component is not allowed beside jobs"),
        ({"type": "pipeline", "component": "azureml:all:1"}, "component must be the file of a pipeline"),
        (whole(inputs={"rows": {"type": "uri_folder"}}), "inputs.rows has no value or path, and the"),
    ],
)  # fmt: skip
def test_a_bad_pipeline_says_which_step_and_what(document: dict[str, Any], words: str) -> None:
    """A step has the same limits as a job of its own; an invalid step starts nothing."""
    clusters = frozenset({"cpu-cluster", "gpu-cluster"})
    order = JobOrder("r", "t", JobSpec(), Limits(clusters, max_nodes=4), written=read_layer(document))
    told = "; ".join(f"{problem.path} {problem.message}" for problem in build(order).problems)
    assert words in told


def test_a_file_of_the_app_is_never_read() -> None:
    """A path that the SDK would read from the submitting machine is refused in every step."""
    job = read_job(changed("evaluate", environment={"image": "i", "conda_file": "/etc/passwd"}))
    assert [problem.path for problem in pipelines.problems(job)] == ["jobs.evaluate.environment.conda_file"]
