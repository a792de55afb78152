"""Leases, and nodes that a run keeps warm: they start nodes, keep them up, and expire."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from shared.clusters import lease_actions as lease_use
from shared.clusters import scaling
from shared.clusters.lease_model import LeaseSpec
from shared.clusters.model import Cluster
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from tests.fakes.world import World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def wanted(seconds: float, nodes: int = 1) -> LeaseSpec:
    return LeaseSpec(nodes, seconds, "tuning lr")


def minimum(world: World) -> int:
    return world.clusters.clusters["cpu-cluster"].min_nodes


def test_a_lease_brings_nodes_up_and_its_end_takes_them(world: World) -> None:
    """A lease sets the cluster's minimum; when the lease ends and nothing used the cluster, the minimum is zero
    again."""
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120)
    made = lease_use.lease(world.system, "cpu-cluster", wanted(3600, 2), Person("ada", "0a1b"))
    world.run_until_idle()
    assert minimum(world) == 2
    latest = world.decisions.latest("cpu-cluster")
    assert latest is not None
    assert latest.why == "Leased by ada: 2 nodes until 2026-01-01 01:00 UTC (tuning lr)."
    world.clock.advance(3599)
    world.run_until_idle()
    assert minimum(world) == 2
    world.clock.advance(3)
    world.run_until_idle()
    assert minimum(world) == 0
    scaling.scale_clusters(world.system)
    assert world.leases.open() == []
    assert world.leases.get(made.id).value == made


def test_a_lease_is_released_and_extended_within_its_bounds(world: World) -> None:
    """An extended lease lasts from now, but never longer in total than allowed. An expired lease cannot be
    extended. A released lease ends."""
    made = lease_use.lease(world.system, "cpu-cluster", wanted(3600), Person("ada"))
    world.clock.advance(1800)
    longer = lease_use.extend(world.system, made.id, 7200)
    assert longer.until == made.made_at + timedelta(seconds=9000)
    assert lease_use.extend(world.system, made.id, 60).until == longer.until
    with pytest.raises(Impossible, match="12 h in all"):
        lease_use.extend(world.system, made.id, 12 * 3600)
    ended = lease_use.release(world.system, made.id, Person("bob", "2c3d"))
    assert (ended.owner_id, ended.released_by, ended.released_by_id) == ("", "bob", "2c3d")
    assert ended.ended_at == world.clock()
    world.clock.advance(5)
    assert lease_use.release(world.system, made.id, Person("eve")) == ended
    with pytest.raises(Conflict, match="Make a new one"):
        lease_use.extend(world.system, made.id, 60)


def test_a_lease_asks_for_what_there_is(world: World) -> None:
    """A lease with more nodes than the cluster has, beyond the time limit, or for an unknown cluster is refused."""
    with pytest.raises(Impossible, match="at most 4"):
        lease_use.lease(world.system, "cpu-cluster", wanted(60, 5), Person("ada"))
    with pytest.raises(Impossible, match="12 h"):
        lease_use.lease(world.system, "cpu-cluster", wanted(13 * 3600), Person("ada"))
    with pytest.raises(NotFound, match="cpu-cluster"):
        lease_use.lease(world.system, "gpu", wanted(60), Person("ada"))


def test_a_run_keeps_its_nodes_warm_as_it_asked(world: World) -> None:
    """The end of a run with `keep warm` creates one lease in its owner's name, even if the end is reported twice."""
    request = RunRequest(template="mnist", data="drops/mnist/a", nodes=2, keep_warm_seconds=1800)
    world.upload("mnist/a/1.bin")
    run = create.create_run(world.system, request, owner="ada", owner_id="0a1b")
    world.run_until_idle()
    for _ in range(2):
        world.job_goes(run.name, "Completed")
        world.deliver_all()
        world.run_until_idle()
    scaling.scale_clusters(world.system)
    (made,) = world.leases.open()
    assert (made.run, made.owner, made.owner_id, made.nodes, made.until - made.made_at) == (
        run.name, "ada", "0a1b", 2, timedelta(seconds=1800),
    )  # fmt: skip
    lease_use.release(world.system, made.id, Person("ada"))
    world.clock.advance(1)
    scaling.scale_clusters(world.system)
    assert world.leases.open() == []
