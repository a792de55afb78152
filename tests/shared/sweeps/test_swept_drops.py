"""Drops that become sweeps: by their job file, by a published sweep, or by their route."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.jobs.search import Parameter, Sweep
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import RunState
from tests.fakes.sweeps import standing_of, sweep_of
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.sweeps import lab


@pytest.fixture
def world(tmp_path: Path) -> World:
    return lab.new_world(tmp_path)


def test_a_drops_job_file_may_be_a_sweep(world: World) -> None:
    """The drop's run is the sweep, with the best of the models trained on the drop."""
    job = 'inputs: {epochs: "1,2,3"}\nsweep: {trials: 3, metric: test_accuracy, sampling: grid}\n'
    world.complete("1.bin", job_file=job)
    for _ in range(3):
        for name in list(world.jobs.jobs):
            if world.jobs.jobs[name].raw == "Queued":
                world.job_goes(name, "Completed")
        world.deliver_all()
        world.run_until_idle()
    (sweep,) = [run for run in world.runs.newest() if run.asked.drop == "mnist/a" and not sweep_of(run)]
    assert (sweep.progress.state, standing_of(sweep).begun) == (RunState.COMPLETED, 3)
    assert [run.asked.parameters["epochs"] for run in lab.trials(world, sweep)] == [1, 2, 3]
    assert "models/model.pt" in world.archived(sweep)


PUBLISHED = """
type: sweep
trial: ./steps/train.yml
inputs: {data: {type: uri_folder, path: ./raw}}
outputs: {model: {type: uri_folder}}
search_space: {lr: {type: choice, values: [0.1, 0.2]}}
sampling_algorithm: grid
objective: {goal: maximize, primary_metric: accuracy}
limits: {max_total_trials: 2, max_concurrent_trials: 2}
"""
TRIAL = b"""
type: command
inputs: {data: {type: uri_folder}, lr: {type: number}, rounds: {type: integer, default: 3}}
outputs: {model: {type: uri_folder}}
environment: azureml:e:1
command: train ${{inputs.data}} ${{inputs.lr}} ${{inputs.rounds}} ${{outputs.model}}
"""


def test_a_drop_may_bring_its_sweeps_trial_as_a_file(world: World) -> None:
    """A published sweep may have its trial as a component file in the drop, with the component's defaults and the
    drop's data."""
    world.upload("mnist/a/steps/train.yml", TRIAL)
    world.complete("raw/1.csv", job_file=PUBLISHED)
    world.run_until_idle()
    sent = [job.spec for job in world.jobs.jobs.values()]
    assert [(job["inputs"]["lr"], job["inputs"]["rounds"], job["environment"]) for job in sent] == [
        (0.1, 3, "azureml:e:1"),
        (0.2, 3, "azureml:e:1"),
    ]
    assert {job["inputs"]["data"]["path"] for job in sent} == {"azureml://datastores/drops/paths/mnist/a/raw"}


SWEPT = replace(
    ROUTE,
    sweep=Sweep(space={"epochs": Parameter("choice", (1, 2, 3))}, metric="test_accuracy", sampling="grid", at_once=9),
)


@pytest.mark.parametrize(
    ("job_file", "epochs"),
    [
        ("", [1, 2, 3]),
        ("tags: {a: b}", [1, 2, 3]),
        ("inputs: {epochs: 7}", [7]),
        ("sweep: null", [2]),
        ("{inputs: {epochs: '4,5'}, sweep: {metric: loss, sampling: grid}}", [4, 5]),
    ],
)
def test_a_routes_sweep_is_that_of_its_drops(tmp_path: Path, job_file: str, epochs: list[int]) -> None:
    """A drop becomes the route's sweep; its job file may fix searched parameters, search others, or search none. A
    request over HTTP gets exactly the requested job."""
    world = World(trainers_folder(tmp_path), [SWEPT])
    world.complete("1.bin", job_file=job_file)
    world.run_until_idle()
    jobs = [job.spec["inputs"]["epochs"] for job in world.jobs.jobs.values()]
    assert sorted(jobs) == epochs
    run = create.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"))
    assert run.asked.request.sweep is None
