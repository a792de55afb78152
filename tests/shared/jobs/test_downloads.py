"""Pretrained weights that the nodes can't download are reported before a run exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.api.catalogue import check
from shared.api.requests import RouteCheck
from shared.drops.model import DropState
from shared.jobs.routes_file import load
from shared.kernel.errors import Impossible
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from tests.fakes.world import World

ROOT = Path(__file__).resolve().parents[3]
DATA = "drops/shelf/a"
WHY = r"weights:? is 'imagenet', which the nodes download from https://download.pytorch.org/models/\. The nodes can't"
ADVICE = r"Choose -p weights=none .* put a file with weights .* -p weights=FILE"


@pytest.fixture
def world() -> World:
    """A world whose nodes have no internet access, with the repository's trainers and routes."""
    made = World(ROOT / "trainers", load(ROOT / "routes.yaml", ROOT / "trainers").routes.values())
    made.blobs.put("drops", "shelf/a/cat/1.png")
    made.jobs.offline = True
    return made


def asked(world: World, **fields: Any) -> Run:
    return create.create_run(world.system, RunRequest(trainer="transfer", data=DATA, **fields))


def test_a_request_is_refused_with_what_to_do(world: World) -> None:
    """A request whose weights can't be downloaded creates no run; the answer names both alternatives."""
    with pytest.raises(Impossible, match=f"{WHY}.*{ADVICE}") as refused:
        asked(world)
    assert refused.value.code == "not_available"
    assert not world.runs.rows


def test_what_needs_no_download_is_accepted(world: World) -> None:
    """Random weights, a file in the data, and cached weights need no network."""
    assert asked(world, parameters={"weights": "none"}).name
    assert asked(world, parameters={"weights": "mine.pth"}).name
    with pytest.raises(Impossible):
        asked(world, parameters={"backbone": "resnet50"})
    world.jobs.cached = {"hub/checkpoints/resnet50-*.pth"}
    assert asked(world, parameters={"backbone": "resnet50"}).name


def test_a_workspace_that_does_not_answer_refuses_nothing(world: World) -> None:
    """When it is unknown whether the nodes reach the address, the run starts, and the trainer itself reports
    missing weights."""
    world.jobs.down = True
    assert asked(world).name


def test_a_retry_is_refused_as_well(world: World) -> None:
    """The job of a run that started with a network is checked again before it is resubmitted without a network."""
    world.jobs.offline = False
    run = asked(world)
    world.run_until_idle()
    world.job_goes(run.name, "Failed")
    world.deliver_all()
    world.run_until_idle()
    world.jobs.offline = True
    with pytest.raises(Impossible, match=WHY):
        retry_and_continue.retry_run(world.system, run.name)
    assert retry_and_continue.retry_run(world.system, run.name, {"weights": "none"}).name


def test_a_drop_is_refused_before_its_upload_and_at_its_end(world: World) -> None:
    """`drop` checks the route first. A drop uploaded by another program is rejected, and no job is submitted."""
    with pytest.raises(Impossible, match=f"{WHY}.*{ADVICE}"):
        check(world.system, "transfer", RouteCheck())
    assert check(world.system, "transfer", RouteCheck(job={"inputs": {"weights": "none"}}))["trains"]

    for name in ("train/cat/1.png", "train/dog/1.png", "_SUCCESS"):
        world.upload(f"transfer/pets/{name}")
    world.deliver_all()
    world.run_until_idle()
    (drop,) = world.drops.rows.values()
    assert (drop.value.state, drop.value.code) == (DropState.REJECTED, "bad_job")
    assert "Choose -p weights=none" in drop.value.why
    assert not world.jobs.submissions
