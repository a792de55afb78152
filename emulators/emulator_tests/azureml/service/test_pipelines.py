"""Published pipelines: MLClient loads the YAML, submits the pipeline, follows it and downloads the results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from emulator_tests.azureml.clouds import Cloud
from emulators.process import wait_for

pytestmark = pytest.mark.filterwarnings("ignore")

# The ways of writing that Azure's own examples have: a component in a file, one within the pipeline, outputs without a
# type, numbers as inputs, a compute for all.
PREP = """
type: command
name: prepare
version: "1"
inputs:
  raw: {type: uri_folder}
  factor: {type: number, default: 2}
  note: {type: string, optional: true}
outputs:
  prepared: {type: uri_folder}
code: ./src
environment: azureml:AzureML-local@latest
command: >-
  python prepare.py ${{inputs.raw}} ${{inputs.factor}} ${{outputs.prepared}} $[[${{inputs.note}}]]
"""
PIPELINE = """
type: pipeline
experiment_name: taxi
inputs:
  trips: {type: uri_folder, path: ./data}
  rounds: 3
outputs:
  trained_model: {mode: upload}
compute: azureml:cpu-cluster
settings:
  default_datastore: azureml:workspaceblobstore
jobs:
  prep_job:
    type: command
    component: file:./prep.yml
    inputs: {raw: "${{parent.inputs.trips}}"}
  train_job:
    type: command
    inputs:
      data: ${{parent.jobs.prep_job.outputs.prepared}}
      rounds: ${{parent.inputs.rounds}}
    outputs:
      model: ${{parent.outputs.trained_model}}
    code: ./src
    environment: azureml:AzureML-local@latest
    command: echo training; python train.py ${{inputs.data}} ${{inputs.rounds}} ${{outputs.model}}
"""
SCRIPTS = {
    "prepare.py": """
import pathlib, sys
raw, factor, prepared, *note = sys.argv[1:]
numbers = [int(n) for n in (pathlib.Path(raw) / "numbers.txt").read_text().split()]
(pathlib.Path(prepared) / "numbers.txt").write_text(" ".join(str(int(n * float(factor))) for n in numbers))
print("prepared", numbers, note)
""",
    "train.py": """
import pathlib, sys
data, rounds, model = sys.argv[1:]
total = sum(int(n) for n in (pathlib.Path(data) / "numbers.txt").read_text().split())
(pathlib.Path(model) / "model.txt").write_text(str(total * int(rounds)))
""",
}
Submit = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as in a repository of examples."""
    (tmp_path / "src").mkdir()
    for name, text in SCRIPTS.items():
        (tmp_path / "src" / name).write_text(text)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("1 2 3")
    (tmp_path / "prep.yml").write_text(PREP)
    return tmp_path


@pytest.fixture
def submit(ml: Any, folder: Path) -> Submit:
    def load_and_submit(text: str = PIPELINE, **changes: Any) -> Any:
        from azure.ai.ml import load_job

        (folder / "pipeline.yml").write_text(text)
        job = load_job(folder / "pipeline.yml")
        for key, value in changes.items():
            setattr(job, key, value)
        return ml.jobs.create_or_update(job)

    return load_and_submit


def own(text: str, rounds: int) -> str:
    """Return the pipeline with its own number of rounds, so that it reuses no result of another test."""
    return text.replace("rounds: 3", f"rounds: {rounds}")


def children(ml: Any, name: str) -> dict[str, Any]:
    return {child.display_name: child for child in ml.jobs.list(parent_job_name=name)}


def origin(step: Any) -> str:
    """Return the name of the job that produced a step's outputs."""
    return str(step.properties.get("azureml.reusedrunid", step.name))


def error_of(cloud: Cloud, name: str) -> str:
    return str(cloud.details(name)["error"]["error"]["message"])


@pytest.mark.usefixtures("contract")
def test_a_published_pipeline_runs_to_its_model(
    ml: Any, cloud: Cloud, submit: Submit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """load_job, create_or_update, stream and download work: the last step's output is the pipeline's output, and
    each step is a job with its own log."""
    # `stream` shows no log of a job that has already ended, and a busy client may take seconds to start it.
    job = submit(own(PIPELINE, 5).replace("echo training;", "echo training; sleep 5;"))
    ml.jobs.stream(job.name)
    streamed = capsys.readouterr().out
    assert re.search(r"Step prep_job starts.*Step train_job starts.*All steps have completed", streamed, re.DOTALL)
    assert ml.jobs.get(job.name).status == "Completed"
    ml.jobs.download(job.name, download_path=tmp_path / "got", output_name="trained_model")
    assert (tmp_path / "got/named-outputs/trained_model/model.txt").read_text() == "60"
    steps = children(ml, job.name)
    assert set(steps) == {"prep_job", "train_job"}
    assert {step.status for step in steps.values()} == {"Completed"}
    assert "prepared [1, 2, 3] []" in cloud.log(steps["prep_job"].name)
    assert "training" in cloud.log(steps["train_job"].name)
    assert job.name in [each.name for each in ml.jobs.list()]
    assert not {step.name for step in steps.values()} & {each.name for each in ml.jobs.list()}


def test_a_step_that_ran_before_is_not_run_again(ml: Any, cloud: Cloud, submit: Submit) -> None:
    """A component with unchanged inputs reuses the earlier outputs. A changed input or force_rerun runs the
    component."""
    first, second = submit(own(PIPELINE, 7)), None
    cloud.wait(first.name)
    second = submit(own(PIPELINE, 7))
    cloud.wait(second.name)
    before, after = children(ml, first.name), children(ml, second.name)
    for step in before:
        assert after[step].properties["azureml.reusedrunid"] == origin(before[step])
    third = submit(own(PIPELINE, 8))
    cloud.wait(third.name)
    changed = children(ml, third.name)
    assert changed["prep_job"].properties["azureml.reusedrunid"] == origin(before["prep_job"])
    assert "azureml.isreused" not in changed["train_job"].properties
    forced = submit(own(PIPELINE, 7).replace("settings:", "settings:\n  force_rerun: true"))
    cloud.wait(forced.name)
    assert not [s for s in children(ml, forced.name).values() if "azureml.isreused" in s.properties]


def test_a_failed_step_names_itself_and_ends_what_needs_it(ml: Any, cloud: Cloud, submit: Submit) -> None:
    """The pipeline fails with the failed step's name and message. Dependent steps are named and never become jobs."""
    job = submit(own(PIPELINE, 9).replace("component: file:./prep.yml", BROKEN))
    assert cloud.wait(job.name)["status"] == "Failed"
    error = error_of(cloud, job.name)
    assert error.startswith("Step 'prep_job' (job ")
    assert "status code 3" in error
    assert "no trips today" in error
    assert error.endswith("Not started: train_job.")
    assert set(children(ml, job.name)) == {"prep_job"}


BROKEN = """
    command: echo no trips today >&2; exit 3
    environment: azureml:AzureML-local@latest
    outputs: {prepared: {type: uri_folder}}
"""
APART = """
type: pipeline
compute: azureml:cpu-cluster
settings: {continue_on_step_failure: CONTINUES}
jobs:
  bad:
    command: exit 3
    environment: azureml:AzureML-local@latest
  slow:
    command: WAITS
    environment: azureml:AzureML-local@latest
"""


@pytest.mark.parametrize(
    ("continues", "command", "slow"), [("true", "sleep 1", "Completed"), ("false", "sleep 300", "Canceled")]
)
def test_a_failure_stops_the_others_or_not(
    ml: Any, cloud: Cloud, submit: Submit, continues: str, command: str, slow: str
) -> None:
    """With continue_on_step_failure, steps that do not depend on the failed step continue; otherwise they are
    canceled."""
    job = submit(APART.replace("CONTINUES", continues).replace("WAITS", command))
    assert cloud.wait(job.name)["status"] == "Failed"
    assert {name: step.status for name, step in children(ml, job.name).items()} == {"bad": "Failed", "slow": slow}


def test_cancel_ends_the_steps_first(ml: Any, cloud: Cloud, submit: Submit) -> None:
    """begin_cancel on a pipeline cancels the running steps first, and then the pipeline."""
    job = submit(APART.replace("exit 3", "sleep 301").replace("WAITS", "sleep 302").replace("CONTINUES", "false"))
    wait_for(lambda: {s.status for s in children(ml, job.name).values()} == {"Running"}, 60, "both steps to run")
    ml.jobs.begin_cancel(job.name).result()
    assert {step.status for step in children(ml, job.name).values()} == {"Canceled"}
    assert ml.jobs.get(job.name).status == "Canceled"


NESTED = """
type: pipeline
name: two_steps
version: "1"
inputs:
  data: {type: uri_folder}
  factor: {type: integer, default: 11}
outputs:
  result: {type: uri_folder}
jobs:
  inner:
    type: command
    component: ./prep.yml
    inputs: {raw: "${{parent.inputs.data}}", factor: "${{parent.inputs.factor}}", note: seen}
    outputs: {prepared: "${{parent.outputs.result}}"}
"""
AROUND = """
type: pipeline
compute: azureml:cpu-cluster
inputs:
  trips: {type: uri_folder, path: ./data}
outputs:
  all: {type: uri_folder}
jobs:
  outer:
    type: pipeline
    component: ./nested.yml
    inputs: {data: "${{parent.inputs.trips}}"}
  last:
    type: command
    component: ./prep.yml
    inputs: {raw: "${{parent.jobs.outer.outputs.result}}"}
    outputs: {prepared: "${{parent.outputs.all}}"}
"""


def test_a_pipeline_within_a_pipeline(ml: Any, cloud: Cloud, submit: Submit, folder: Path) -> None:
    """A pipeline component is a step. Its own steps are its children, and its output is passed on."""
    (folder / "nested.yml").write_text(NESTED)
    job = submit(AROUND)
    assert cloud.wait(job.name)["status"] == "Completed", error_of(cloud, job.name)
    steps = children(ml, job.name)
    inner = children(ml, steps["outer"].name)
    assert set(inner) == {"inner"}
    assert "prepared [1, 2, 3] ['seen']" in cloud.log(inner["inner"].name)
    assert "prepared [11, 22, 33] []" in cloud.log(steps["last"].name)


def test_registered_components_are_steps(ml: Any, cloud: Cloud, submit: Submit, folder: Path) -> None:
    """azureml:NAME:VERSION refers to the workspace's component."""
    from azure.ai.ml import load_component

    ml.components.create_or_update(load_component(folder / "prep.yml"))
    typed = 'data: {type: uri_folder, path: "${{parent.jobs.prep_job.outputs.prepared}}"}'
    text = own(PIPELINE, 13).replace("data: ${{parent.jobs.prep_job.outputs.prepared}}", typed)
    job = submit(text.replace("file:./prep.yml", "azureml:prepare:1"))
    assert cloud.wait(job.name)["status"] == "Completed", error_of(cloud, job.name)


def test_a_registered_output_is_an_asset(ml: Any, cloud: Cloud, submit: Submit) -> None:
    """A named output of the pipeline becomes a version of the named asset."""
    job = submit(own(PIPELINE, 17).replace("{mode: upload}", "{type: custom_model, name: taxi-model, version: '4'}"))
    assert cloud.wait(job.name)["status"] == "Completed", error_of(cloud, job.name)
    assert ml.models.get("taxi-model", "4").path.endswith("/model/")


def test_a_restart_goes_on_where_it_was(own_cloud: Callable[..., Cloud]) -> None:
    """After a restart, the control plane runs the remaining steps of a pipeline and repeats no finished step."""
    cloud = own_cloud()
    environment = "azureml:AzureML-local@latest"

    def component(name: str, command: str) -> str:
        spec = {"type": "command", "command": command, "environment": environment, "outputs": {"o": {}}}
        body = {**spec, "inputs": {"after": {"type": "uri_folder", "optional": True}}}
        cloud.arm("PUT", f"components/{name}/versions/1", {"properties": {"componentSpec": body}})
        return f"{cloud.workspace}/components/{name}/versions/1"

    bound = {"after": {"job_input_type": "literal", "value": "${{parent.jobs.one.outputs.o}}"}}
    first = component("one", "echo $AZUREML_RUN_ID > ${{outputs.o}}/id")
    second = component(
        "two", "while [ ! -e go ] && [ $AZUREML_CR_ATTEMPT = 1 ]; do sleep 0.1; done; cat ${{inputs.after}}/id"
    )
    steps = {"one": {"type": "command", "componentId": first}, "two": {"componentId": second, "inputs": bound}}
    settings = {"default_compute": f"{cloud.workspace}/computes/cpu-cluster"}
    cloud.arm("PUT", "jobs/again", {"properties": {"jobType": "Pipeline", "jobs": steps, "settings": settings}})

    def runs() -> dict[str, Any]:
        path = f"/history/v1.0{cloud.workspace}/runs/again/children"
        return {run["displayName"]: run for run in cloud.call("GET", path).json()["value"]}

    wait_for(lambda: runs().get("two", {}).get("status") == "Running", 60, "the second step to run")
    before = runs()
    cloud.restart()
    assert cloud.wait("again")["status"] == "Completed"
    assert {name: run["runId"] for name, run in runs().items()} == {name: run["runId"] for name, run in before.items()}
    assert runs()["one"]["endTimeUtc"] == before["one"]["endTimeUtc"]
    assert before["one"]["runId"] in cloud.log(before["two"]["runId"])


VALUES = """
type: pipeline
compute: azureml:cpu-cluster
jobs:
  first:
    type: command
    component:
      type: command
      outputs: {count: {type: integer}}
      environment: azureml:AzureML-local@latest
      command: WRITES
  second:
    type: command
    component:
      type: command
      inputs: {count: {type: integer}}
      environment: azureml:AzureML-local@latest
      command: echo got ${{inputs.count}} things
    inputs: {count: "${{parent.jobs.first.outputs.count}}"}
"""


def test_a_value_that_a_step_writes_is_an_input_of_the_next(ml: Any, cloud: Cloud, submit: Submit) -> None:
    """The text of the file at an output of type integer is the number that the next step gets."""
    job = submit(VALUES.replace("WRITES", "echo 42 > ${{outputs.count}}"))
    assert cloud.wait(job.name)["status"] == "Completed"
    assert "got 42 things" in cloud.log(children(ml, job.name)["second"].name)


@pytest.mark.parametrize(("value", "ran"), [("True", "yes"), ("false", "no")])
def test_a_condition_chooses_the_steps_that_run(cloud: Cloud, value: str, ran: str) -> None:
    """The steps of the other block, and the steps that need them, never start, and the pipeline completes."""

    def component(name: str, command: str, **parts: Any) -> str:
        spec = {"type": "command", "command": command, "environment": "azureml:AzureML-local@latest", **parts}
        cloud.arm("PUT", f"components/{name}/versions/1", {"properties": {"componentSpec": spec}})
        return f"{cloud.workspace}/components/{name}/versions/1"

    says = f"printf {value} > ${{{{outputs.is_good}}}}"
    jobs = {
        "judge": {"componentId": component(f"judge-{ran}", says, outputs={"is_good": {"type": "boolean"}})},
        "yes": {"componentId": component("one", "echo yes")},
        "no": {"componentId": component("two", "echo no")},
        "choose": {
            "type": "if_else",
            "condition": "${{parent.jobs.judge.outputs.is_good}}",
            "true_block": "${{parent.jobs.yes}}",
            "false_block": ["${{parent.jobs.no}}"],
        },
    }
    settings = {"default_compute": f"{cloud.workspace}/computes/cpu-cluster"}
    body = {"properties": {"jobType": "Pipeline", "jobs": jobs, "settings": settings}}
    cloud.arm("PUT", f"jobs/choice-{ran}", body)
    assert cloud.wait(f"choice-{ran}")["status"] == "Completed"
    found = cloud.call("GET", f"/history/v1.0{cloud.workspace}/runs/choice-{ran}/children").json()["value"]
    assert {run["displayName"] for run in found} == {"judge", ran}


def test_a_value_that_was_not_written_fails_the_pipeline(cloud: Cloud, submit: Submit) -> None:
    job = submit(VALUES.replace("WRITES", "echo ${{outputs.count}}"))
    assert cloud.wait(job.name)["status"] == "Failed"
    assert re.search(
        r"Step 'first' \(job .*\): its output 'count', a value, was not written", error_of(cloud, job.name)
    )


REFUSED = {
    "spark": ("a step of type 'spark' is not supported here", {"one": {"type": "spark"}}),
    "automl": ("a step of type 'automl' is not supported here", {"one": {"type": "automl"}}),
    "loop": ("a step of type 'do_while' is not supported here", {"one": {"type": "do_while"}}),
    "no condition": ("its condition is None", {"one": {"type": "if_else"}}),
    "no such block": (
        "Step 'one' names two; the pipeline has: none",
        {"one": {"type": "if_else", "condition": True, "true_block": "${{parent.jobs.two}}"}},
    ),
    "no component": ("Step 'one' names no component", {"one": {"type": "command"}}),
    "unknown component": (
        "No version 9 of 'nobody' among the workspace's components; register it first, for example with",
        {"one": {"componentId": "azureml:nobody:9"}},
    ),
    "no steps": ("its jobs are empty", {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_run_is_refused_before_anything_starts(cloud: Cloud, case: str) -> None:
    """A step of an unsupported kind, or without a component, is a 400 with the step's name, and no step starts."""
    words, steps = REFUSED[case]
    name = f"refused-{case.replace(' ', '-')}"
    body = {"properties": {"jobType": "Pipeline", "jobs": steps}}
    answer = cloud.call("PUT", f"{cloud.workspace}/jobs/{name}", body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert cloud.call("GET", f"{cloud.workspace}/jobs/{name}").status_code == 404


def test_mlclient_shows_a_refusal_with_the_step(submit: Submit) -> None:
    """An environment that can't be built is reported with the step's name before the first step runs."""
    with pytest.raises(HttpResponseError, match=r"Step 'train_job': .*nowhere"):
        submit(own(PIPELINE, 19).replace("src\n    environment: azureml:AzureML-local@latest", NOWHERE))


NOWHERE = "src\n    environment: azureml:nowhere:1"
