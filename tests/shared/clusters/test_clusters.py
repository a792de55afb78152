"""Decisions about clusters, and what a check does when calls are refused, come late or die half-way."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.clusters import scaling
from shared.clusters.decide import Need, judge_cluster, judge_instance
from shared.clusters.lease_model import Lease, nodes_held
from shared.clusters.model import INSTANCE, AllocationCode, AllocationError, Cluster, Decision
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.settings import Rules
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from tests.fakes.ports import Crash
from tests.fakes.world import World, trainers_folder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WARM = Cluster("c", min_nodes=1, max_nodes=4, idle_seconds=120, nodes=1, idle_nodes=1)
QUOTA = AllocationError("The specified subscription has a total vCPU quota of 0.", AllocationCode.QUOTA)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def lease(nodes: int = 1, until: float = 3600, made: float = 60, **changes: Any) -> Lease:
    found = Lease("20260102T030305-00000000", "c", nodes, "ada", "tuning", ago(made), NOW + timedelta(seconds=until))
    return replace(found, **changes)


IDLE = Decision("c", "wait", "idle_time", "", ago(1), ago(500))


@pytest.mark.parametrize(
    ("cluster", "need", "action", "code", "min_nodes"),
    [
        (WARM, Need("Run r is queued.", over_budget="No money."), "keep", "busy", None),
        (replace(WARM, min_nodes=0), Need("Run r is queued.", leases=(lease(2),)), "keep", "busy", 2),
        (replace(WARM, errors=(QUOTA,)), Need("Run r is queued."), "wait", "broken", None),
        (replace(WARM, errors=(QUOTA,), running_nodes=1), Need("Run r is running."), "keep", "busy", None),
        (WARM, Need(expected="Drop d is open."), "keep", "expected", None),
        (replace(WARM, busy_nodes=1), Need(), "keep", "busy_nodes", None),
        (replace(WARM, pin="the booth"), Need(over_budget="No money."), "keep", "pinned", None),
        (WARM, Need(over_budget="No money.", leases=(lease(),)), "to-zero", "over_budget", 0),
        (replace(WARM, min_nodes=0), Need(leases=(lease(2),)), "keep", "leased", 2),
        (replace(WARM, min_nodes=0), Need(leases=(lease(9),)), "keep", "leased", 4),
        (replace(WARM, min_nodes=3), Need(leases=(lease(2), lease(1))), "keep", "leased", 2),
        (WARM, Need(leases=(lease(until=-1),)), "to-zero", "idle", 0),
        (WARM, Need(leases=(lease(released_at=ago(5)),)), "to-zero", "idle", 0),
        (WARM, Need(last_used=ago(60)), "wait", "idle_time", None),
        (WARM, Need(idle_seconds=900), "wait", "idle_time", None),
        (replace(WARM, errors=(QUOTA,)), Need(last_used=ago(60)), "wait", "broken", None),
        (replace(WARM, errors=(QUOTA,)), Need(), "to-zero", "idle", 0),
    ],
)
def test_one_decision_out_of_all_reasons(
    cluster: Cluster, need: Need, action: str, code: str, min_nodes: int | None
) -> None:
    """The first reason that holds decides, in the order of shared/clusters/decide.py."""
    decision = judge_cluster(cluster, need, IDLE, NOW)
    assert (decision.action, decision.code, decision.min_nodes) == (action, code, min_nodes)


WORDS = st.sampled_from([None, "because"])
LEASES = st.lists(
    st.builds(
        lease,
        st.integers(1, 9),
        st.integers(-100, 100),
        st.integers(-50, 100),
        released_at=st.sampled_from([None, ago(1)]),
    ),
    max_size=3,
)
CLUSTERS = st.builds(
    Cluster,
    st.just("c"),
    st.integers(0, 4),
    st.integers(4, 6),
    st.sampled_from([0.0, 120.0, 1e6]),
    nodes=st.integers(0, 4),
    busy_nodes=st.integers(0, 2),
    running_nodes=st.integers(0, 2),
    unusable_nodes=st.integers(0, 1),
    errors=st.sampled_from([(), (QUOTA,)]),
    pin=st.sampled_from(["", "the booth"]),
)
NEEDS = st.builds(Need, WORDS, WORDS, LEASES.map(tuple), WORDS, st.sampled_from([None, NOW, ago(5), ago(9999)]))
LATEST = st.sampled_from([None, IDLE, replace(IDLE, replaces=2), replace(IDLE, idle_since=None, code="busy")])


@given(CLUSTERS, NEEDS, LATEST)
@settings(max_examples=150)
def test_every_cluster_gets_a_decision_and_none_loses_what_it_needs(
    cluster: Cluster, need: Need, latest: Decision | None
) -> None:
    """Every state gets a decision with a reason; only nodes that nothing needs or holds are removed."""
    decision = judge_cluster(cluster, need, latest, NOW)
    assert decision.code
    assert decision.why
    assert decision.action in ("keep", "wait", "to-zero")
    assert (decision.action == "to-zero") == (decision.min_nodes == 0)
    if decision.min_nodes is not None and decision.min_nodes < cluster.min_nodes:
        assert not any((need.busy, need.expected, cluster.busy_nodes, cluster.pin))
        assert need.over_budget or decision.min_nodes >= min(nodes_held(need.leases, NOW), cluster.max_nodes)
    if decision.min_nodes is not None:
        assert 0 <= decision.min_nodes <= cluster.max_nodes


def test_a_minimum_that_nothing_explains_is_found() -> None:
    """A minimum above zero that no lease and no pin explains is reported, whatever else keeps the cluster up."""
    assert judge_cluster(WARM, Need("Run r is running."), None, NOW).findings == (
        "Its minimum is 1; no lease and no pin explains it; it is removed when no job runs.",
    )
    two = replace(WARM, min_nodes=2)
    assert judge_cluster(two, Need(leases=(lease(),)), None, NOW).findings == (
        "Its minimum is 2; leases explain 1 of them.",
    )
    assert judge_cluster(WARM, Need(leases=(lease(),)), None, NOW).findings == ()
    assert judge_cluster(replace(WARM, pin="booth"), Need(), None, NOW).findings == ()


def test_an_instance_is_told_of_and_stopped_only_when_configured() -> None:
    """A running compute instance is reported; it is stopped after the hours that an administrator set, if any."""
    instance = Cluster("ci", 0, 1, 0, nodes=1, kind=INSTANCE, allocation_since=ago(7200))
    rules = Rules(stop_instances_after=timedelta(hours=2))
    assert judge_instance(instance, None, Rules(), NOW).action == "keep"
    assert judge_instance(instance, None, Rules(), NOW).findings == ("A compute instance that has been on for 2.0 h.",)
    assert judge_instance(instance, None, rules, NOW).action == "stop"
    assert judge_instance(replace(instance, pin="the booth"), None, rules, NOW).code == "pinned"
    assert judge_instance(replace(instance, nodes=0), None, rules, NOW).code == "at_zero"


def idle_for(world: World, cluster: str, seconds: float) -> None:
    since = world.clock() - timedelta(seconds=seconds)
    world.decisions.record(Decision(cluster, "wait", "idle_time", "", world.clock(), since), None)


def test_a_cluster_that_refuses_stops_no_other(world: World) -> None:
    """A cluster's refusal is recorded as broken, with Azure ML's words; the next check tries the cluster again."""
    world.clusters.clusters |= {name: Cluster(name, 1, 4, 120, nodes=1) for name in ("b", "d")}
    for name in ("b", "cpu-cluster", "d"):
        idle_for(world, name, 500)
    world.clusters.refuses["cpu-cluster"] = "403 ScopeLocked: the scope is locked."
    assert [(d.cluster, d.code) for d in scaling.scale_clusters(world.system)] == [
        ("b", "idle"),
        ("cpu-cluster", "broken"),
        ("d", "idle"),
    ]
    latest = world.decisions.latest("cpu-cluster")
    assert latest is not None
    assert "403 ScopeLocked" in latest.why
    scaling.scale_clusters(world.system)
    assert [d.code for d in world.decisions.history("cpu-cluster")] == ["broken", "idle", "idle_time"]
    del world.clusters.refuses["cpu-cluster"]
    scaling.scale_clusters(world.system)
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 0


def test_what_comes_while_a_cluster_goes_down_gets_it_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop that opens between the last reading and the change is found right after the change, and the minimum is
    restored. If the check dies in between, the next check restores the minimum."""
    idle_for(world, "cpu-cluster", 500)
    scale = world.clusters.scale
    dies = [True, False]

    def slow(name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        if min_nodes == 0:
            world.upload("mnist/a/1.bin")
            world.deliver_all()
            world.run_until_idle()
        scale(name, min_nodes, idle_seconds)
        if dies.pop(0):
            raise Crash("the process died")

    monkeypatch.setattr(world.clusters, "scale", slow)
    with pytest.raises(Crash):
        scaling.scale_clusters(world.system)
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 0
    assert [d.code for d in scaling.scale_clusters(world.system)] == ["expected"]
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 1


def test_a_dry_run_changes_nothing(world: World) -> None:
    """With dry_run the decision is recorded and marked as a dry run; the cluster stays as it is."""
    idle_for(world, "cpu-cluster", 500)
    (decision,) = scaling.scale_clusters(replace(world.system, rules=Rules(dry_run=True)))
    assert (decision.action, decision.dry_run) == ("to-zero", True)
    assert world.clusters.zeroed == []
    assert world.decisions.latest("cpu-cluster") == decision


def test_a_run_that_ends_has_its_cluster_looked_at(world: World) -> None:
    """The end of a run schedules one check of its cluster a moment later, which also samples the nodes."""
    for name in ("1.bin", "_SUCCESS"):
        world.upload(f"mnist/a/{name}")
    world.deliver_all()
    world.clock.advance(61)
    world.run_until_idle()
    run = world.only_run()
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.run_until_idle()
    world.clock.advance(60)
    world.job_goes(run.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    ended = world.clock()
    world.clock.advance(6)
    world.run_until_idle()
    latest = world.decisions.latest("cpu-cluster")
    assert latest is not None
    assert (latest.code, latest.at > ended) == ("idle_time", True)
    second = timedelta(seconds=1)
    (sample,) = world.samples.between("cpu-cluster", ended + second, world.clock() + second)
    assert sample.seen_by == "event"


def test_a_cluster_in_use_is_not_scaled(world: World) -> None:
    """A cluster that a run needs stays up, with the run's name in the reason, forced or not."""
    world.blobs.put("drops", "shelf/a/1.bin")
    run = create_run(world.system, RunRequest(template="mnist", data="drops/shelf/a"))
    for force in (False, True):
        with pytest.raises(Conflict, match=run.name) as refused:
            scaling.scale_to_zero(world.system, "cpu-cluster", force)
        assert refused.value.code == "busy"
    assert world.clusters.zeroed == []


def test_busy_nodes_are_never_stopped(world: World) -> None:
    """Busy nodes of unknown work keep the cluster up, forced or not."""
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 1, 4, 120, nodes=1, busy_nodes=1)
    with pytest.raises(Conflict, match="1 of 1 nodes"):
        scaling.scale_to_zero(world.system, "cpu-cluster", force=True)


def test_an_idle_cluster_waits_for_its_time_unless_forced(world: World) -> None:
    """A cluster stays up within its idle time; force stops it, and the decision is recorded with its reason."""
    scaling.scale_clusters(world.system)
    world.clock.advance(60)
    with pytest.raises(Conflict, match="Idle for 60 of 120 s") as refused:
        scaling.scale_to_zero(world.system, "cpu-cluster")
    assert refused.value.code == "idle_time"
    scaling.scale_to_zero(world.system, "cpu-cluster", force=True)
    latest = world.decisions.latest("cpu-cluster")
    assert isinstance(latest, Decision)
    assert (world.clusters.zeroed, latest.code) == (["cpu-cluster"], "forced")
    again = scaling.scale_to_zero(world.system, "cpu-cluster")
    assert (again.action, world.clusters.zeroed) == ("keep", ["cpu-cluster"])


def test_a_cluster_goes_after_its_idle_time(world: World) -> None:
    """A cluster that nothing needs goes to zero after its idle time, without force; an unknown cluster is NotFound."""
    scaling.scale_clusters(world.system)
    world.clock.advance(121)
    assert scaling.scale_to_zero(world.system, "cpu-cluster").action == "to-zero"
    with pytest.raises(NotFound, match="there are: cpu-cluster"):
        scaling.scale_to_zero(world.system, "nope")
