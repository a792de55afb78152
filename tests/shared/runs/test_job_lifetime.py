"""No run gets more time than Azure ML gives a job: 7 days on low-priority nodes, 21 days on others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.clusters.model import Cluster
from shared.jobs.limits import DAY
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Unavailable
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.intake.request import RunRequest
from shared.runs.ports import Reason
from tests.fakes.world import ROUTE, World, trainers_folder

LOW, SURE = "cpu-cluster", "sure"
LONG = replace(ROUTE, clusters=frozenset({LOW, SURE}), timeout_seconds=30 * DAY)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path), [LONG])
    world.jobs.clusters = {LOW, SURE}
    world.clusters.clusters = {
        name: Cluster(name, 0, 4, 120, tier=tier) for name, tier in ((LOW, "low_priority"), (SURE, "dedicated"))
    }
    return world


@pytest.mark.parametrize(("cluster", "days", "where"), [(LOW, 7, "on low-priority nodes"), (SURE, 21, "a job after")])
def test_a_request_is_capped_and_says_so(world: World, cluster: str, days: int, where: str) -> None:
    """The job, the dry run and the record have the shorter limit; the run's first line gives the reason."""
    request = RunRequest(template="mnist", data="azureml://datastores/workspaceblobstore/paths/p", cluster=cluster)
    assert dry_run(world.system, request)["job"]["limits"]["timeout"] == days * DAY
    run = create.create_run(world.system, request)
    assert run.asked.request.timeout_seconds == run.asked.timeout_seconds == days * DAY
    why = run.progress.history[0].why
    assert f"Its time limit is {days} days instead of 30: Azure ML ends a job" in why
    assert where in why


def test_a_drop_is_capped(world: World) -> None:
    """The job that Azure ML gets for a drop has the limit of the cluster's tier, and the run's history says so."""
    world.complete("1.bin")
    run = world.only_run()
    assert world.jobs.jobs[run.name].spec["limits"]["timeout"] == 7 * DAY
    assert "instead of 30" in run.progress.history[0].why


class NobodyAnswers:
    """Clusters that can't be reached."""

    def reasons(self, name: str, nodes: int) -> list[Reason]:
        raise Unavailable(name)

    def is_low_priority(self, name: str) -> bool:
        raise Unavailable(name)


def test_the_tier_is_asked_for_only_if_it_matters() -> None:
    """A limit of at most 7 days needs no request to Azure ML, so it also works while Azure ML is away."""
    assert within_lifetime(NobodyAnswers(), JobSpec(cluster=LOW, timeout_seconds=7 * DAY))[1] == ""
    with pytest.raises(Unavailable):
        within_lifetime(NobodyAnswers(), JobSpec(cluster=LOW, timeout_seconds=7 * DAY + 1))
