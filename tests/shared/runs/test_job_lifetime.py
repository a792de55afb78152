"""No job gets more time than Azure ML allows: 7 days on low-priority nodes, 21 days on others.

"Data for runs not completed within the maximum lifetime is not accessible", so a job's own limit is an hour shorter:
https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared.clusters.model import Cluster
from shared.jobs.limits import DAY
from shared.jobs.location import Asset
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Unavailable
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from shared.runs.ports import Reason
from shared.runs.progress.put_job import put_job
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.runs.test_intake import ends

HOUR = 3600
Again = Callable[..., Run]

LOW, SURE = "cpu-cluster", "sure"
DATA = "azureml://datastores/workspaceblobstore/paths/p"
LOW_HOURS, SURE_HOURS = 7 * 24 - 1, 21 * 24 - 1
LONG = replace(ROUTE, clusters=frozenset({LOW, SURE}), timeout_seconds=30 * DAY)
PIPELINE = f"""
type: pipeline
settings: {{default_compute: "azureml:{LOW}"}}
limits: {{timeout: {30 * DAY}}}
jobs:
  brief: {{command: sleep 1, environment: "azureml:e:1", limits: {{timeout: 60}}}}
  long: {{command: sleep 1, environment: "azureml:e:1"}}
  sure: {{command: sleep 1, environment: "azureml:e:1", compute: "azureml:{SURE}"}}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path), [LONG])
    world.jobs.clusters = {LOW, SURE}
    world.clusters.clusters = {
        name: Cluster(name, 0, 4, 120, tier=tier) for name, tier in ((LOW, "low_priority"), (SURE, "dedicated"))
    }
    return world


def limit(world: World, job: str) -> float:
    """Return the time limit, in hours, of a job that Azure ML got."""
    return float(world.jobs.jobs[job].spec["limits"]["timeout"]) / HOUR


@pytest.mark.parametrize(
    ("cluster", "hours", "where"),
    [(LOW, LOW_HOURS, "on low-priority nodes"), (SURE, SURE_HOURS, "a job after 21")],
)
def test_a_request_is_capped_and_says_so(world: World, cluster: str, hours: int, where: str) -> None:
    """The job, the dry run and the record have the shorter limit; the run's first history line gives the reason."""
    request = RunRequest(template="mnist", data=DATA, cluster=cluster)
    assert dry_run(world.system, request)["job"]["limits"]["timeout"] == hours * HOUR
    run = create.create_run(world.system, request)
    assert run.asked.request.timeout_seconds == run.asked.timeout_seconds == hours * HOUR
    why = run.progress.history[0].why
    assert f"Its time limit is {hours} h instead of 720 h: Azure ML ends a job" in why
    assert where in why


def test_a_drop_is_capped(world: World) -> None:
    """The job that Azure ML gets for a drop has the limit of the cluster's tier, and the run's history says so."""
    world.complete("1.bin")
    run = world.only_run()
    assert limit(world, run.name) == LOW_HOURS
    assert "instead of 720 h" in run.progress.history[0].why


def on_the_other_tier(world: World) -> Run:
    """Return a failed run with 503 h on dedicated nodes, whose cluster has low-priority nodes from now on."""
    run = create.create_run(world.system, RunRequest(template="mnist", data=DATA, cluster=SURE))
    path = place_text(run.asked.request.outputs["checkpoints"].path).partition("/paths/")[2]
    world.blobs.put("azureml-blobstore", f"{path}000001/marker", b"")
    run = ends(world, run, "Failed")
    world.clusters.clusters[SURE] = replace(world.clusters.clusters[SURE], tier="low_priority")
    return run


@pytest.mark.parametrize("again", [retry_and_continue.retry_run, retry_and_continue.continue_run])
def test_a_run_made_from_a_run_is_capped_for_its_own_nodes(world: World, again: Again) -> None:
    """A retry or a continuation copies its run's limit, although the nodes may have another tier by now."""
    new = again(world.system, on_the_other_tier(world).name)
    assert new.asked.timeout_seconds == new.asked.request.timeout_seconds == LOW_HOURS * HOUR
    assert f"Its time limit is {LOW_HOURS} h instead of {SURE_HOURS} h" in new.progress.history[0].why


def test_a_run_that_moves_is_capped_for_where_it_goes(world: World) -> None:
    """A run that moves from dedicated to low-priority nodes gets the limit of the low-priority nodes."""
    run = create.create_run(world.system, RunRequest(template="mnist", data=DATA, cluster=SURE))
    new = retry_and_continue.move_run(world.system, run.name, LOW, "Its nodes are idle.")
    assert new.asked.request.timeout_seconds == LOW_HOURS * HOUR


def test_a_job_is_capped_when_it_is_sent(world: World) -> None:
    """The job that Azure ML gets has the limit of its nodes, whatever the run's record says, such as for a run with
    a date whose next job uses the other tier."""
    run = create.create_run(world.system, RunRequest(template="mnist", data=DATA, cluster=SURE))
    job = replace(run.asked.request, name="late", cluster=LOW, code="", environment=Asset("e:1"))
    put_job(world.system, "late", job)
    assert limit(world, "late") == LOW_HOURS


def test_the_steps_of_a_pipeline_are_capped_one_by_one(world: World) -> None:
    """Each step has the limit of its own nodes, its own time or the pipeline's; the pipeline itself may take
    longer."""
    world.complete("1.bin", job_file=PIPELINE)
    run = world.only_run()
    sent = {name: body["limits"]["timeout"] / HOUR for name, body in world.jobs.jobs[run.name].spec["jobs"].items()}
    assert sent == {"brief": 60 / HOUR, "long": LOW_HOURS, "sure": SURE_HOURS}
    assert run.asked.timeout_seconds == 30 * DAY
    why = run.progress.history[0].why
    assert f"The time limit of step long is {LOW_HOURS} h instead of 720 h" in why
    assert f"The time limit of step sure is {SURE_HOURS} h instead of 720 h" in why


class NobodyAnswers:
    """Clusters that can't be reached."""

    def reasons(self, name: str, nodes: int) -> list[Reason]:
        raise Unavailable(name)

    def is_low_priority(self, name: str) -> bool:
        raise Unavailable(name)


def test_the_tier_is_asked_for_only_if_it_matters() -> None:
    """A limit that low-priority nodes allow needs no request to Azure ML, so it also works while Azure ML is away."""
    assert within_lifetime(NobodyAnswers(), JobSpec(cluster=LOW, timeout_seconds=LOW_HOURS * HOUR))[1] == ""
    with pytest.raises(Unavailable):
        within_lifetime(NobodyAnswers(), JobSpec(cluster=LOW, timeout_seconds=LOW_HOURS * HOUR + 1))
