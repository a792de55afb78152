"""A plain job that Azure ML fails after a preemption is continued by another job, up to a limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.kernel.drop_key import DropKey
from shared.runs.model import Run, RunState
from shared.runs.names import run_of_job
from shared.runs.progress.cancel import cancel_run
from shared.runs.results import mlflow_metrics
from tests.fakes.world import ROUTE, World, trainers_folder

# As a user of Azure ML reported: https://github.com/Azure/MachineLearningNotebooks/issues/1242
TAKEN = (
    "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or "
    "restarted. Reason: Received pre-emption warning signal"
)
A = DropKey("mnist", "a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, resubmissions=2)])


def started(world: World) -> Run:
    for name in ("1.bin", "_SUCCESS"):
        world.upload(f"mnist/a/{name}", b"" if name == "_SUCCESS" else b"x")
    settle(world)
    settle(world)
    run = world.only_run()
    goes(world, run.name, "Running")
    return world.only_run()


def settle(world: World) -> None:
    world.deliver_all()
    world.clock.advance(4)
    world.run_until_idle()


def goes(world: World, job: str, raw: str, error: str = "") -> None:
    world.job_goes(job, raw, error)
    settle(world)


def test_another_job_goes_on(world: World) -> None:
    """The next job has the same outputs, so the same checkpoints, and its own name; the archive has both jobs'
    logs."""
    name = started(world).name
    goes(world, name, "Failed", TAKEN)
    run, second = world.only_run(), f"{name}-a2"
    assert (run.progress.state, run.jobs.job, run.jobs.number, run.jobs.resubmit) == (RunState.QUEUED, second, 2, False)
    assert "job 2 continues from its checkpoints" in run.progress.history[-1].why
    first, other = (world.jobs.jobs[job].spec for job in (name, second))
    assert {**other, "name": name, "limits": first["limits"]} == first
    assert first["limits"]["timeout"] - 60 < other["limits"]["timeout"] < first["limits"]["timeout"]
    assert run_of_job(second) == name
    for job in (name, second):
        world.blobs.put("azureml", f"ExperimentRun/dcid.{job}/user_logs/std_log.txt", job.encode())
    goes(world, second, "Running")
    goes(world, second, "Completed")
    run = world.only_run()
    assert (run.progress.state, run.progress.attempts) == (RunState.COMPLETED, 2)
    assert {"logs/std_log.txt", "logs/attempt-1/std_log.txt"} <= world.archived(run)


def test_the_budget_ends(world: World) -> None:
    """After the resubmissions that the route allows, the run fails with that reason."""
    name = started(world).name
    for job in (name, f"{name}-a2", f"{name}-a3"):
        goes(world, job, "Running")
        goes(world, job, "Failed", TAKEN)
    run = world.only_run()
    assert (run.progress.state, run.jobs.number) == (RunState.FAILED, 3)
    assert run.progress.reason.startswith("Its nodes were preempted, and all 2 resubmissions are used.")
    assert [job for job in world.jobs.jobs if job.startswith(name)] == [name, f"{name}-a2", f"{name}-a3"]


def test_all_jobs_share_the_time_limit(world: World) -> None:
    """The next job has the time that the earlier jobs left; without time left, there is no next job."""
    name = started(world).name
    limit = world.jobs.jobs[name].spec["limits"]["timeout"]
    world.clock.advance(limit - 100)
    goes(world, name, "Failed", TAKEN)
    left = world.jobs.jobs[f"{name}-a2"].spec["limits"]["timeout"]
    assert 60 <= left <= 100
    goes(world, f"{name}-a2", "Running")
    world.clock.advance(50)
    goes(world, f"{name}-a2", "Failed", TAKEN)
    assert world.only_run().progress.reason.startswith("Its nodes were preempted, and its time limit is used up.")


def test_a_canceled_run_gets_no_further_job(world: World) -> None:
    """A cancel ends the run, even when the nodes are preempted at the same time."""
    name = started(world).name
    cancel_run(world.system, name)
    goes(world, name, "Failed", TAKEN)
    assert world.only_run().progress.state is RunState.CANCELED
    assert f"{name}-a2" not in world.jobs.jobs


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("crash", range(8))
def test_a_crash_loses_no_further_job(world: World, crash: int, when: str) -> None:
    """Wherever the handler dies, the second job is sent, once."""
    name = started(world).name
    world.job_goes(name, "Failed", TAKEN)
    world.deliver_all()
    while world.handle("job-events", crashes=[""] * crash + [when]):
        world.clock.advance(6)
        world.run_until_idle()
    world.settle()
    run = world.only_run()
    assert (run.progress.state, run.jobs.number, run.jobs.resubmit) == (RunState.COMPLETED, 2, False)
    assert [job for job in world.jobs.jobs if job.startswith(name)] == [name, f"{name}-a2"]


def test_what_each_job_logged_is_one_curve(world: World) -> None:
    """The run's curve joins the metrics that both jobs logged to MLflow, in order of time."""
    name = started(world).name
    goes(world, name, "Failed", TAKEN)
    world.jobs.metrics = {name: {"loss": [(1, 0.9, 100.0), (2, 0.7, 101.0)]}, f"{name}-a2": {"loss": [(3, 0.5, 200.0)]}}
    assert [(row["step"], row["loss"]) for row in mlflow_metrics.rows(world.system.jobs, world.only_run())] == [
        (1, 0.9),
        (2, 0.7),
        (3, 0.5),
    ]
