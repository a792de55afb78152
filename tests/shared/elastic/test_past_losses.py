"""Node losses that happened while no worker of the app ran: the run records each of them afterwards."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from shared.api import queries
from shared.elastic.model import elastic_of
from shared.jobs.readers.azureml import read_job
from shared.runs.model import RunState
from tests.fakes.world import ELASTIC, ROUTE, World, trainers_folder
from tests.shared.elastic.test_elastic_runs import PREEMPTED, go, start

TWO_MEMBERS = replace(ROUTE, template=read_job(ELASTIC), trainer="cifar", nodes=2, min_nodes=1, resubmissions=2)


@pytest.fixture(params=["elastic", "single"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(trainers_folder(tmp_path), [TWO_MEMBERS if request.param == "elastic" else ROUTE])


def one_job(world: World) -> str:
    """Start a run and return the name of its first, running job."""
    run = start(world)
    job = next(iter(world.jobs.jobs))
    go(world, job, "Running")
    assert job.startswith(run)
    return job


def losses(world: World) -> list[str]:
    """Return the losses that `show` prints: those of members, or the returns to the queue in the run's history."""
    answer = queries.run(world.system, world.only_run().name)
    if answer.get("elastic"):
        return [loss["why"] for loss in answer["elastic"]["losses"]]
    states = [moment["state"] for moment in answer["history"]]
    return ["queued" for step in pairwise(states) if step == ("running", "queued")]


def away(world: World, job: str, *raw: str) -> None:
    """Let the job change its states, half a minute apart, while no worker handles its events."""
    for each in raw:
        world.clock.advance(30)
        world.job_goes(job, each)


def back(world: World) -> None:
    world.clock.advance(30)
    world.deliver_all()
    world.run_until_idle()


def test_a_job_that_has_new_nodes_by_now_had_lost_them(world: World) -> None:
    """Azure ML restarted the job while the worker was dead: the status is `Running` as before, but the event shows
    the loss."""
    job = one_job(world)
    away(world, job, "Queued", "Running")
    back(world)
    assert len(losses(world)) == 1
    assert world.only_run().progress.state is RunState.RUNNING


def test_a_job_that_ended_meanwhile_had_lost_its_nodes(world: World) -> None:
    """The job was restarted and ended while the worker was dead."""
    job = one_job(world)
    away(world, job, "Queued", "Running", "Completed")
    back(world)
    assert len(losses(world)) == 1


def test_a_loss_counts_once(world: World) -> None:
    """Event Grid may deliver an event twice, and a restarted job goes through several states before it runs again."""
    job = one_job(world)
    away(world, job, "Queued", "Running")
    world.in_flight *= 2
    back(world)
    back(world)
    assert len(losses(world)) == 1


def test_an_event_of_the_first_start_that_arrives_late_is_no_loss(world: World) -> None:
    """The job was queued before it first ran, and the event about that arrives after the start."""
    run = start(world)
    job = next(iter(world.jobs.jobs))
    world.job_goes(job, "Queued")
    world.clock.advance(30)
    world.job_goes(job, "Running")
    world.in_flight.reverse()
    back(world)
    assert losses(world) == []
    assert world.only_run().name == run


def test_an_event_without_a_time_proves_nothing(world: World) -> None:
    """An event without a time may be older than the run's last state, so the job's state is read as always."""
    job = one_job(world)
    away(world, job, "Queued", "Running")
    for event in world.in_flight:
        event["eventTime"] = "soon"
    back(world)
    assert losses(world) == []
    assert world.only_run().progress.state is RunState.RUNNING


@pytest.mark.parametrize("listed", [False, True])
def test_an_eviction_is_kept_if_the_training_ends_meanwhile(tmp_path: Path, listed: bool) -> None:
    """Azure evicted one member and the other completed, both while the worker was dead. The run is completed and
    lists the loss, whether the app learns of both from events or from Azure ML's list of jobs."""
    world = World(trainers_folder(tmp_path), [TWO_MEMBERS])
    run = start(world)
    for index in (0, 1):
        go(world, f"{run}-m{index}-1", "Running")
    world.clock.advance(30)
    world.job_goes(f"{run}-m0-1", "Completed")
    world.job_goes(f"{run}-m1-1", "Failed", PREEMPTED)
    if listed:
        world.in_flight.clear()
        world.clock.advance(3600)
        world.reconcile()
    back(world)
    assert [loss.index for loss in elastic_of(world.only_run()).losses] == [1]
    assert world.only_run().progress.state is RunState.COMPLETED
