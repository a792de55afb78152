"""Runs that are pipelines, on fakes: from a drop's job file to the archive of the steps' output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.adapters.azureml.job_forms import form_of
from shared.drops.model import DropState
from shared.jobs.readers.azureml import read_job
from shared.jobs.readers.place_text import place_text
from shared.jobs.readers.run_event import job_of, status_of
from shared.jobs.spec import JobSpec, output_path
from shared.kernel.errors import Unavailable
from shared.pipelines.workload import steps_of
from shared.runs.messages import JobEvent
from shared.runs.model import Run, RunState
from shared.runs.progress.follow import follow_job
from shared.runs.progress.workloads import workload
from shared.runs.views.summary import reason_with_log
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder

JOB = """
type: pipeline
outputs: {models: {type: uri_folder}}
jobs:
  prepare:
    component: ./steps/prepare.yml
    inputs: {raw: {type: uri_folder, path: ./raw}}
  train:
    command: train ${{inputs.data}} ${{outputs.model}}
    environment: azureml:e:1
    resources: {instance_count: 2}
    inputs: {data: "${{parent.jobs.prepare.outputs.clean}}"}
    outputs: {model: "${{parent.outputs.models}}"}
  evaluate:
    command: test ${{inputs.model}}
    environment: azureml:e:1
    inputs: {model: "${{parent.jobs.train.outputs.model}}"}
"""
PREPARE = b"""
type: command
inputs: {raw: {type: uri_folder}}
outputs: {clean: {type: uri_folder}}
environment: {image: "python:3.11", conda_file: conda.yml}
command: prepare ${{inputs.raw}} ${{outputs.clean}}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def dropped(world: World, job_file: str = JOB) -> Run:
    """Return the run of a drop with this pipeline as its job file."""
    for name, data in {"prepare.yml": PREPARE, "conda.yml": b"dependencies: [python]"}.items():
        world.upload(f"mnist/a/steps/{name}", data)
    world.complete("raw/1.csv", job_file=job_file)
    (run,) = world.runs.newest()
    return run


def goes(world: World, run: Run, **steps: str) -> Run:
    """Set the states of the pipeline's steps, and deliver Azure ML's event for a step."""
    for name, raw in steps.items():
        world.jobs.set_step(run.name, name, raw, "Exit 3. Error: x" if raw == "Failed" else "")
    world.clock.advance(10)
    follow_job(world.system, JobEvent(run.name))
    return world.runs.get(run.name).value


def states(run: Run) -> dict[str, str]:
    return {step.name: step.state.value for step in steps_of(run)}


def test_a_drops_pipeline_is_one_job_with_its_steps(world: World) -> None:
    """Azure ML gets the whole job, with the drop's components in it and its data named. The run has each step's
    state. At the end the archive has the pipeline's outputs, and the steps' logs in their own folders."""
    run = dropped(world)
    sent = world.jobs.jobs[run.name].spec
    assert (run.asked.kind, run.asked.nodes, list(world.jobs.jobs)) == ("pipeline", 2, [run.name])
    prepare = sent["jobs"]["prepare"]
    assert prepare["component"]["environment"]["conda_file"] == {"dependencies": ["python"]}
    assert prepare["inputs"]["raw"]["path"] == "azureml://datastores/drops/paths/mnist/a/raw"
    assert sent["outputs"]["models"]["path"] == place_text(output_path(run.name, "models"))
    assert [(step.name, step.needs) for step in steps_of(run)] == [
        ("prepare", ()),
        ("train", ("prepare",)),
        ("evaluate", ("train",)),
    ]
    world.job_goes(run.name, "Running")
    run = goes(world, run, prepare="Completed", train="Running")
    assert states(run) == {"prepare": "completed", "train": "running", "evaluate": "waiting"}
    run = goes(world, run, train="Completed", evaluate="Completed")
    world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/models/model.pt", b"m")
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}-of-train/user_logs/std_log.txt", b"trained")
    world.job_goes(run.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    run = world.runs.get(run.name).value
    assert (run.progress.state, workload(run).log_of(run, 1)) == (RunState.COMPLETED, (f"{run.name}-of-train", 0))
    assert world.archived(run) >= {"models/model.pt", "logs/train/std_log.txt", "manifest.json"}


def test_a_failed_step_names_itself(world: World) -> None:
    """The run's reason is the failed step's, with its log; dependent steps are skipped and reported."""
    run = dropped(world)
    world.job_goes(run.name, "Running")
    world.jobs.set_step(run.name, "prepare", "Completed")
    world.jobs.set_step(run.name, "train", "Failed", "Exit 3. Error: x")
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}-of-train/user_logs/std_log.txt", b"no trips today")
    world.job_goes(run.name, "Failed", "A step failed.")
    world.deliver_all()
    world.run_until_idle()
    run = world.runs.get(run.name).value
    assert states(run) == {"prepare": "completed", "train": "failed", "evaluate": "skipped"}
    assert reason_with_log(run) == "Step 'train' failed: Exit 3. Not started: evaluate.\nstd_log.txt:\nno trips today"


WITHIN = """
type: pipeline
jobs:
  prepare:
    command: prepare ${{outputs.clean}}
    environment: azureml:e:1
    outputs: {clean: {type: uri_folder}}
  inner:
    type: pipeline
    inputs: {data: "${{parent.jobs.prepare.outputs.clean}}"}
    outputs: {model: {type: uri_folder}}
    component:
      type: pipeline
      inputs: {data: {type: uri_folder}}
      outputs: {model: {type: uri_folder}}
      jobs:
        train:
          command: train ${{inputs.data}} ${{outputs.model}}
          environment: azureml:e:1
          resources: {instance_count: 2}
          inputs: {data: "${{parent.inputs.data}}"}
          outputs: {model: "${{parent.outputs.model}}"}
        test:
          command: test ${{inputs.model}}
          environment: azureml:e:1
          inputs: {model: "${{parent.jobs.train.outputs.model}}"}
  last:
    command: last ${{inputs.model}}
    environment: azureml:e:1
    inputs: {model: "${{parent.jobs.inner.outputs.model}}"}
"""


def test_steps_within_a_step_are_steps_of_the_run(world: World) -> None:
    """The run has one graph: inner steps follow the outer step's dependencies, and the outer step follows its last
    inner step. Each step has its state, nodes are paid once, and the innermost failed step is named."""
    run = dropped(world, WITHIN)
    assert [(step.name, step.needs) for step in steps_of(run)] == [
        ("prepare", ()),
        ("inner", ("inner.test",)),
        ("inner.train", ("prepare",)),
        ("inner.test", ("inner.train",)),
        ("last", ("inner",)),
    ]
    world.job_goes(run.name, "Running")
    world.jobs.set_step(run.name, "prepare", "Completed")
    run = goes(world, run, **{"inner": "Running", "inner.train": "Running"})
    run = goes(world, run, **{"inner": "Failed", "inner.train": "Failed"})
    world.job_goes(run.name, "Failed", "A step failed.")
    world.deliver_all()
    world.run_until_idle()
    run = world.runs.get(run.name).value
    assert states(run) == {
        "prepare": "completed", "inner": "failed", "inner.train": "failed", "inner.test": "skipped", "last": "skipped",
    }  # fmt: skip
    assert run.progress.reason == "Step 'inner.train' failed: Exit 3. Not started: inner.test, last."
    (use,) = workload(run).uses(run, world.clock())
    assert [(spell.nodes, (spell.end - spell.begin).total_seconds()) for spell in use.ran] == [(2, 10.0)]


def test_each_steps_nodes_are_paid_for(world: World) -> None:
    """A step's nodes count as the run's use of its cluster while the step runs, and no longer."""
    run = dropped(world)
    world.job_goes(run.name, "Running")
    goes(world, run, prepare="Running")
    run = goes(world, run, prepare="Completed", train="Running")
    (listed,) = world.runs.newest()  # as in lists, without its job
    (use,) = workload(listed).uses(changed(listed, request=JobSpec()), world.clock())
    seconds = [(spell.nodes, (spell.end - spell.begin).total_seconds()) for spell in use.ran]
    assert (use.cluster, seconds) == ("cpu-cluster", [(1, 10.0), (2, 10.0)])


def test_an_event_that_was_lost_is_made_good(world: World) -> None:
    """The run's hourly check, which reads lists of jobs, also reads the steps of a pipeline that has ended."""
    run = dropped(world)
    world.jobs.set(run.name, "Running")
    for step in ("prepare", "train", "evaluate"):
        world.jobs.set_step(run.name, step, "Completed")
    world.jobs.set(run.name, "Completed")
    for _ in range(3):
        world.clock.advance(300)
        world.reconcile()
        world.run_until_idle()
    assert set(states(world.runs.get(run.name).value).values()) == {"completed"}


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({}, ("step-1", "Completed")),
        ({"azureml.pipelinerunid": "run-1"}, ("run-1", "")),
        ({"azureml.pipelinerunid": "inner-1", "azureml.rootpipelinerunid": "run-1"}, ("run-1", "")),
        ({"azureml.rootpipelinerunid": "step-1"}, ("step-1", "Completed")),  # the pipeline itself
    ],
)
def test_an_event_of_a_step_is_one_of_its_pipeline(properties: dict[str, str], told: tuple[str, str]) -> None:
    """A step's run event names its pipeline and the outermost pipeline among its properties; the status is the
    step's."""
    data: dict[str, Any] = {"runId": "step-1", "runStatus": "Completed", "runProperties": properties}
    event = {"eventType": "Microsoft.MachineLearningServices.RunStatusChanged", "data": data}
    assert (job_of(event), status_of(event)) == told


@pytest.mark.parametrize(
    ("job_file", "words"),
    [
        (JOB.replace("prepare.yml", "no.yml"), "line 6: jobs.prepare.component: the drop has no file 'steps/no.yml'."),
        (
            JOB.replace("command: train", "code: ./raw\n    command: train"),
            "jobs.train.code: a drop can't have its own",
        ),
        (
            JOB.replace("    command: test", "    type: spark\n    command: test"),
            "jobs.evaluate.type: is 'spark'; a step",
        ),
        (
            JOB.replace("instance_count: 2", "instance_count: 5"),
            "jobs.train.resources.instance_count: is 5; use a whole",
        ),
        (
            JOB.replace("environment: azureml:e:1", "compute: azureml:gpu", 1),
            "jobs.train.compute: is 'gpu'; choose one",
        ),
        (JOB.replace("./raw}", "../../b}"), "jobs.prepare.inputs.raw.path"),
    ],
)
def test_a_bad_pipeline_rejects_its_drop(world: World, job_file: str, words: str) -> None:
    """The rejection has the line of the step, and nothing starts."""
    for name, data in {"prepare.yml": PREPARE, "conda.yml": b"dependencies: [python]"}.items():
        world.upload(f"mnist/a/steps/{name}", data)
    world.complete("raw/1.csv", job_file=job_file)
    (drop,) = [stored.value for stored in world.drops.rows.values()]
    assert (drop.state, world.jobs.jobs) == (DropState.REJECTED, {})
    assert words in drop.why


class WithoutComponents:
    """A local workspace that has nothing registered, and whose registries have no component."""

    def find(self, path: str) -> dict[str, Any] | None:
        return None

    def find_in_registry(self, registry: str, path: str) -> dict[str, Any] | None:
        return None

    def preflight(self, job: dict[str, Any]) -> dict[str, Any]:
        named = job.get("component")
        return {"refusals": [f"No version of {named}"] if named else []}


class InAzure(WithoutComponents):
    """Azure's workspace, which has no preflight; its registry `shared` has version 2 of the component fit."""

    def __init__(self) -> None:
        self.refuses = False

    def find_in_registry(self, registry: str, path: str) -> dict[str, Any] | None:
        if self.refuses:
            raise Unavailable("403")
        return (
            {} if (registry, path) in {("shared", "components/fit"), ("shared", "components/fit/versions/2")} else None
        )

    def preflight(self, job: dict[str, Any]) -> dict[str, Any]:
        return {}


def test_in_azure_the_registry_itself_is_asked() -> None:
    """The component is looked up by version, or in any version; a registry that refuses the app does not stop the
    run."""
    in_shared = "azureml://registries/shared/components"
    names = {
        "label": f"{in_shared}/fit/labels/latest",
        "bare": f"{in_shared}/fit",
        "version": f"{in_shared}/fit/versions/2",
        "older": f"{in_shared}/fit/versions/1",
        "other": "azureml://registries/azureml/components/gone/labels/latest",
    }
    pipeline = read_job({"type": "pipeline", "jobs": {name: {"component": each} for name, each in names.items()}})
    azure = InAzure()
    assert form_of(pipeline).lacks(pipeline, azure) == [
        f"Step {name!r}: component {names[name]} is not in the registry." for name in ("older", "other")
    ]
    azure.refuses = True
    assert form_of(pipeline).lacks(pipeline, azure) == []


class WithoutData:
    """A workspace whose storage has no data yet."""

    def find(self, path: str) -> None:
        return None

    def find_in_registry(self, registry: str, path: str) -> None:
        return None

    def preflight(self, job: dict[str, Any]) -> dict[str, Any]:
        return {"refusals": [f"nothing at {given['path']}" for given in job.get("inputs", {}).values()]}


def test_data_that_a_step_writes_need_not_be_there_before_the_run() -> None:
    """An input at or below the place of an output of the pipeline comes to be; any other must exist."""
    store = "azureml://datastores/workspaceblobstore/paths"
    write = {"command": "x", "environment": "azureml:e:1", "outputs": {"made": {"path": f"{store}/made"}}}
    given = {"below": f"{store}/made/a.txt", "beside": f"{store}/made-not/a.txt"}
    inputs = {name: {"type": "uri_file", "path": path} for name, path in given.items()}
    read = {"command": "x", "environment": "azureml:e:1", "inputs": inputs}
    pipeline = read_job({"type": "pipeline", "jobs": {"write": write, "read": read}})
    assert form_of(pipeline).lacks(pipeline, WithoutData()) == [f"Step 'read': nothing at {given['beside']}"]


def test_a_registrys_component_is_looked_up_before_a_run_exists() -> None:
    """A workspace that can check reports each step's missing component, of a registry or of the workspace."""
    step = {"component": "azureml://registries/azureml/components/download_model/labels/latest"}
    pipeline = read_job({"type": "pipeline", "jobs": {"get": step, "use": {"component": "azureml:own:1"}}})
    assert form_of(pipeline).lacks(pipeline, WithoutComponents()) == [
        f"Step 'get': No version of {step['component']}",
        "Step 'use': component azureml:own:1 is not in the workspace; register it first.",
    ]
