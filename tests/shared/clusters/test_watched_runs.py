"""Runs that the scaling timer watches: runs past their limit, and runs that repeatedly lose their nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.clusters import scaling
from shared.clusters.model import Cluster
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from tests.fakes.world import ROUTE, World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def running(world: World) -> str:
    world.upload("mnist/a/1.bin")
    run = create.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a", timeout_seconds=600))
    world.run_until_idle()
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.run_until_idle()
    return run.name


def test_a_run_past_its_limit_is_canceled(world: World) -> None:
    """A run that Azure ML did not end at its limit is canceled with that reason, and reported."""
    name = running(world)
    world.clock.advance(600 + 299)
    assert scaling.scale_clusters(world.system)[0].findings == (
        "Its minimum is 1; no lease and no pin explains it; it is removed when no job runs.",
    )
    world.clock.advance(2)
    words = "It has run for 0.3 h, past its time limit of 600 s."
    assert scaling.scale_clusters(world.system)[0].findings[0] == f"Run {name}: {words}"
    world.run_until_idle()
    world.job_goes(name, "Canceled")
    world.deliver_all()
    world.run_until_idle()
    assert world.runs.get(name).value.progress.reason == words


MOVING = replace(ROUTE, move_to="steady", move_after=2, move_within_seconds=3600)


def lose_nodes(world: World, name: str, times: int) -> None:
    for _ in range(times):
        for raw in ("Running", "Queued"):
            world.clock.advance(60)
            world.job_goes(name, raw)
            world.deliver_all()
            world.run_until_idle()


def test_a_run_that_keeps_losing_its_nodes_moves_once(tmp_path: Path) -> None:
    """After the configured number of preemptions within the time, one new run continues from the checkpoints on the
    cluster that the route names. The old run ends with that reason. With fewer preemptions the run stays."""
    world = World(trainers_folder(tmp_path), [MOVING])
    world.jobs.clusters.add("steady")
    world.clusters.clusters["steady"] = Cluster("steady", 0, 4, 120, tier="dedicated")
    world.upload("mnist/a/1.bin")
    world.in_flight.clear()  # the event is lost, so the drop creates no run itself
    run = create.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"), owner="ada")
    world.run_until_idle()
    lose_nodes(world, run.name, 1)
    scaling.scale_clusters(world.system)
    assert world.runs.get(run.name).value.cancel.asked_at is None
    lose_nodes(world, run.name, 1)
    for _ in range(2):
        scaling.scale_clusters(world.system)
    world.run_until_idle()
    (moved,) = [r for r in world.runs.newest() if r.name != run.name]
    spec = world.jobs.jobs[moved.name].spec
    assert (moved.asked.cluster, moved.asked.continues, moved.people.owner, spec["compute"]) == (
        "steady", run.name, "ada", "azureml:steady",
    )  # fmt: skip
    checkpoints = [world.jobs.jobs[name].spec["outputs"]["checkpoints"]["path"] for name in (run.name, moved.name)]
    assert checkpoints[0] == checkpoints[1]
    assert world.jobs.jobs[run.name].raw == "Canceled"
    world.job_goes(run.name, "Canceled")
    world.deliver_all()
    world.run_until_idle()
    why = f"It lost its nodes 2 times within 1 h. It continues as run {moved.name} on steady."
    assert world.runs.get(run.name).value.progress.reason == why


def test_preemptions_long_ago_move_nothing(tmp_path: Path) -> None:
    """Only preemptions within the route's time count."""
    world = World(trainers_folder(tmp_path), [MOVING])
    world.upload("mnist/a/1.bin")
    world.in_flight.clear()  # the event is lost, so the drop creates no run itself
    run = create.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"))
    world.run_until_idle()
    lose_nodes(world, run.name, 1)
    world.clock.advance(3600)
    lose_nodes(world, run.name, 1)
    scaling.scale_clusters(world.system)
    assert len(world.runs.newest()) == 1
