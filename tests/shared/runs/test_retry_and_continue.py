"""Runs made from runs, on fakes: retried with other parameters, continued, or started from a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.jobs.readers.place_text import place_text
from shared.kernel.errors import Conflict, Impossible
from shared.runs.intake import create, retry_and_continue
from shared.runs.model import Run, RunState
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.runs.test_intake import DATA, asked, ends, request

CHECKPOINT = "trainyard/{}/checkpoints/000001-step-1/marker"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


def over(world: World, raw: str, checkpoint: bool = True) -> Run:
    """Return an archived run that ended in this state."""
    run = asked(world)
    path = str(run.asked.request.outputs["checkpoints"].path).partition("/")[2]
    if checkpoint:
        world.blobs.put("azureml-blobstore", f"{path}000001/marker")
    return ends(world, run, raw)


def place(run: Run, output: str) -> str:
    return place_text(run.asked.request.outputs[output].path)


def test_a_retry_may_change_parameters(world: World) -> None:
    """The new run has these parameters and is otherwise the same job; each set of parameters has one retry."""
    old = over(world, "Failed")
    plain = retry_and_continue.retry_run(world.system, old.name)
    more = retry_and_continue.retry_run(world.system, old.name, {"epochs": "7"})
    assert (more.asked.parameters, more.asked.retry_of, more.asked.request.inputs["epochs"]) == (
        {"epochs": 7},
        old.name,
        7,
    )
    assert retry_and_continue.retry_run(world.system, old.name, {"epochs": 7}).name == more.name != plain.name
    assert retry_and_continue.retry_run(world.system, old.name, {"epochs": 2}).name == plain.name
    assert more.progress.history[0].why == f"Run {old.name} is submitted again with epochs=7."
    with pytest.raises(Impossible, match="Did you mean 'epochs'"):
        retry_and_continue.retry_run(world.system, old.name, {"epoch": 7})
    assert place(more, "checkpoints") != place(old, "checkpoints")


@pytest.mark.parametrize("raw", ["Canceled", "Failed"])
def test_a_run_goes_on_where_it_was(world: World, raw: str) -> None:
    """The new run has the old run's checkpoints and metrics, and a model of its own; there is one such run."""
    old = over(world, raw)
    new = retry_and_continue.continue_run(world.system, old.name)
    assert (new.asked.continues, new.progress.state) == (old.name, RunState.RECEIVED)
    shared = [name for name in old.asked.request.outputs if place(new, name) == place(old, name)]
    assert sorted(shared) == ["checkpoints", "metrics"]
    assert retry_and_continue.continue_run(world.system, old.name).name == new.name
    with pytest.raises(Conflict, match="Continue that one"):
        retry_and_continue.continue_run(world.system, old.name, {"epochs": 9})
    assert ends(world, new).progress.state is RunState.COMPLETED
    assert place(retry_and_continue.retry_run(world.system, new.name), "checkpoints") != place(old, "checkpoints")


def test_a_completed_run_needs_more_to_do(world: World) -> None:
    """A completed run can only continue with more epochs; a live run must be canceled first."""
    live = asked(world)
    with pytest.raises(Conflict, match="Cancel it first"):
        retry_and_continue.continue_run(world.system, live.name)
    old = over(world, "Completed")
    for given in ({}, {"epochs": 2}, {"epochs": 1}):
        with pytest.raises(Impossible, match="more epochs than its 2"):
            retry_and_continue.continue_run(world.system, old.name, given)
    assert retry_and_continue.continue_run(world.system, old.name, {"epochs": 3}).asked.parameters == {"epochs": 3}


def test_without_a_checkpoint_nothing_goes_on(world: World) -> None:
    """The refusal of a run without checkpoints, or with deleted ones, says what to do instead."""
    old = over(world, "Canceled", checkpoint=False)
    for blob in list(world.blobs.containers.get("azureml-blobstore", {})):
        del world.blobs.containers["azureml-blobstore"][blob]
    with pytest.raises(Impossible, match="has no checkpoint"):
        retry_and_continue.continue_run(world.system, old.name)


def test_a_trainer_says_how_it_takes_a_model(world: World) -> None:
    """A run that starts from a model has the model's folder as an input, and the trainer's flag for it after the
    command."""
    old = over(world, "Completed")
    ask_for = {"template": "mnist", "data": DATA, "from_run": old.name}
    with pytest.raises(Impossible, match=r"no tag trainyard\.from_model"):
        create.create_run(world.system, request(**ask_for))
    template = replace(ROUTE.template, tags={"trainyard.from_model": "--from-model"})
    world.system = replace(world.system, routes={"mnist": replace(ROUTE, template=template)})
    new = create.create_run(world.system, request(**ask_for), "k")
    assert place_text(new.asked.request.data["from_model"].path) == place(old, "models")
    assert str(new.asked.request.command).endswith(" --from-model {inputs.from_model}")
    assert new.asked.from_run == old.name
    failed = over(world, "Failed")
    with pytest.raises(Impossible, match="is failed; only a completed run"):
        create.create_run(world.system, request(**{**ask_for, "from_run": failed.name}))
