"""Clusters: what is decided about them, and what a sweep makes of it when things are refused, late, or die half-way."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.clusters import lease as lease_use
from shared.clusters import sweep
from shared.clusters.decide import Need, judge_cluster, judge_instance
from shared.clusters.leases import Lease, Wish, nodes_held
from shared.clusters.model import INSTANCE, Cluster, Decision
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.settings import Rules
from shared.runs import ask
from shared.runs.request import RunRequest
from tests.fakes import Crash
from tests.world import ROUTE, World, trainers_folder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WARM = Cluster("c", min_nodes=1, max_nodes=4, idle_seconds=120, nodes=1, idle_nodes=1)
QUOTA = "ClusterCoreQuotaReached: The limit of 10 cores of Standard NCv3 is reached."


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
    """The first reason that holds decides, in the order that shared/clusters/decide.py gives."""
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
@settings(max_examples=150, deadline=None)
def test_every_cluster_gets_a_decision_and_none_loses_what_it_needs(
    cluster: Cluster, need: Need, latest: Decision | None
) -> None:
    """Whatever is known, there is a decision with a reason; nodes are taken only from what nothing needs or holds."""
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
    """A minimum above zero is told of, whatever else keeps the cluster up, but for what leases or a pin explain."""
    assert judge_cluster(WARM, Need("Run r is running."), None, NOW).findings == (
        "Its minimum is 1; no lease and no pin explains it.",
    )
    two = replace(WARM, min_nodes=2)
    assert judge_cluster(two, Need(leases=(lease(),)), None, NOW).findings == (
        "Its minimum is 2; leases explain 1 of them.",
    )
    assert judge_cluster(WARM, Need(leases=(lease(),)), None, NOW).findings == ()
    assert judge_cluster(replace(WARM, pin="booth"), Need(), None, NOW).findings == ()


def test_an_instance_is_told_of_and_stopped_only_when_configured() -> None:
    """A compute instance that is on is a finding; it is stopped after the hours that an administrator set, if any."""
    instance = Cluster("ci", 0, 1, 0, nodes=1, kind=INSTANCE, allocation_since=ago(7200))
    rules = Rules(stop_instances_after=timedelta(hours=2))
    assert judge_instance(instance, None, Rules(), NOW).action == "keep"
    assert judge_instance(instance, None, Rules(), NOW).findings == ("A compute instance that has been on for 2.0 h.",)
    assert judge_instance(instance, None, rules, NOW).action == "stop"
    assert judge_instance(replace(instance, pin="the booth"), None, rules, NOW).code == "pinned"
    assert judge_instance(replace(instance, nodes=0), None, rules, NOW).code == "at_zero"


def idle_for(world: World, cluster: str, seconds: float) -> None:
    since = world.clock() - timedelta(seconds=seconds)
    world.sweeps.record(Decision(cluster, "wait", "idle_time", "", world.clock(), since))


def test_a_cluster_that_refuses_stops_no_other(world: World) -> None:
    """What one cluster refuses is recorded as broken with Azure ML's words; the next sweep tries it again."""
    world.clusters.clusters |= {name: Cluster(name, 1, 4, 120, nodes=1) for name in ("b", "d")}
    for name in ("b", "cpu-cluster", "d"):
        idle_for(world, name, 500)
    world.clusters.refuses["cpu-cluster"] = "403 ScopeLocked: the scope is locked."
    assert [(d.cluster, d.code) for d in sweep.sweep(world.system)] == [
        ("b", "idle"),
        ("cpu-cluster", "broken"),
        ("d", "idle"),
    ]
    latest = world.sweeps.latest("cpu-cluster")
    assert latest is not None
    assert "403 ScopeLocked" in latest.why
    sweep.sweep(world.system)
    assert [d.code for d in world.sweeps.history("cpu-cluster")] == ["broken", "idle", "idle_time"]
    del world.clusters.refuses["cpu-cluster"]
    sweep.sweep(world.system)
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 0


def test_what_comes_while_a_cluster_goes_down_gets_it_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop that opens between the sweep's last look and its change is seen right after it, and the minimum is put
    back; so it is by the next sweep if this one dies in between."""
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
        sweep.sweep(world.system)
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 0
    assert [d.code for d in sweep.sweep(world.system)] == ["expected"]
    assert world.clusters.clusters["cpu-cluster"].min_nodes == 1


def test_a_dry_run_changes_nothing(world: World) -> None:
    """With dry_run the decision is recorded as it would be, and marked; the cluster stays as it is."""
    idle_for(world, "cpu-cluster", 500)
    (decision,) = sweep.sweep(replace(world.system, rules=Rules(dry_run=True)))
    assert (decision.action, decision.dry_run) == ("to-zero", True)
    assert world.clusters.zeroed == []
    assert world.sweeps.latest("cpu-cluster") == decision


def test_a_run_that_ends_has_its_cluster_looked_at(world: World) -> None:
    """The end of a run asks for one look at its cluster, a moment later, and that samples the nodes too."""
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
    latest = world.sweeps.latest("cpu-cluster")
    assert latest is not None
    assert (latest.code, latest.at > ended) == ("idle_time", True)
    second = timedelta(seconds=1)
    (sample,) = world.samples.between("cpu-cluster", ended + second, world.clock() + second)
    assert sample.seen_by == "event"


def wanted(seconds: float, nodes: int = 1) -> Wish:
    return Wish(nodes, seconds, "tuning lr")


def minimum(world: World) -> int:
    return world.clusters.clusters["cpu-cluster"].min_nodes


def test_a_lease_brings_nodes_up_and_its_end_takes_them(world: World) -> None:
    """A lease sets the cluster's minimum; once its time is over, and nothing used the cluster, it is zero again."""
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120)
    made = lease_use.lease(world.system, "cpu-cluster", wanted(3600, 2), Person("ada", "0a1b"))
    world.run_until_idle()
    assert minimum(world) == 2
    latest = world.sweeps.latest("cpu-cluster")
    assert latest is not None
    assert latest.why == "Leased by ada: 2 nodes until 2026-01-01 01:00 UTC (tuning lr)."
    world.clock.advance(3599)
    world.run_until_idle()
    assert minimum(world) == 2
    world.clock.advance(3)
    world.run_until_idle()
    assert minimum(world) == 0
    sweep.sweep(world.system)
    assert world.leases.open() == []
    assert world.leases.get(made.id).value == made


def test_a_lease_is_released_and_extended_within_its_bounds(world: World) -> None:
    """Extended it lasts from now, never longer in all than allowed, and not once it is over; released it ends."""
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
    """More nodes than the cluster has, a time beyond the limit and an unknown cluster are refused."""
    with pytest.raises(Impossible, match="at most 4"):
        lease_use.lease(world.system, "cpu-cluster", wanted(60, 5), Person("ada"))
    with pytest.raises(Impossible, match="12 h"):
        lease_use.lease(world.system, "cpu-cluster", wanted(13 * 3600), Person("ada"))
    with pytest.raises(NotFound, match="cpu-cluster"):
        lease_use.lease(world.system, "gpu", wanted(60), Person("ada"))


def test_a_run_keeps_its_nodes_warm_as_it_asked(world: World) -> None:
    """The end of a run that asked for it makes one lease in its owner's name, though the end is told twice."""
    request = RunRequest(template="mnist", data="drops/mnist/a", nodes=2, keep_warm_seconds=1800)
    world.upload("mnist/a/1.bin")
    run = ask.create_run(world.system, request, owner="ada", owner_id="0a1b")
    world.run_until_idle()
    for _ in range(2):
        world.job_goes(run.name, "Completed")
        world.deliver_all()
        world.run_until_idle()
    sweep.sweep(world.system)
    (made,) = world.leases.open()
    assert (made.run, made.owner, made.owner_id, made.nodes, made.until - made.made_at) == (
        run.name, "ada", "0a1b", 2, timedelta(seconds=1800),
    )  # fmt: skip
    lease_use.release(world.system, made.id, Person("ada"))
    world.clock.advance(1)
    sweep.sweep(world.system)
    assert world.leases.open() == []


def running(world: World) -> str:
    world.upload("mnist/a/1.bin")
    run = ask.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a", timeout_seconds=600))
    world.run_until_idle()
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.run_until_idle()
    return run.name


def test_a_run_past_its_limit_is_canceled(world: World) -> None:
    """What Azure ML should have ended at its limit and has not is canceled, with that as its reason, and told of."""
    name = running(world)
    world.clock.advance(600 + 299)
    assert sweep.sweep(world.system)[0].findings == ("Its minimum is 1; no lease and no pin explains it.",)
    world.clock.advance(2)
    words = "It has run for 0.3 h, past its time limit of 600 s."
    assert sweep.sweep(world.system)[0].findings[0] == f"Run {name}: {words}"
    world.run_until_idle()
    world.job_goes(name, "Canceled")
    world.deliver_all()
    world.run_until_idle()
    assert world.runs.get(name).value.reason == words


@pytest.mark.parametrize(("cancels", "utilization", "told", "state"), [
    (False, 2.0, True, "Running"), (True, 2.0, True, "Canceled"), (True, 60.0, False, "Running"),
])  # fmt: skip
def test_idle_gpus_are_told_of_and_canceled_where_configured(
    world: World, cancels: bool, utilization: float, told: bool, state: str
) -> None:
    """A run whose metrics say that its GPUs did nothing for 15 minutes is a finding; configured so, it is canceled."""
    name = running(world)
    began = world.clock().timestamp()
    rows = [{"step": n, "gpu_utilization": utilization, "time": began + 60 * n} for n in range(17)]
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    world.blobs.put("azureml-blobstore", f"trainyard/{name}/metrics/metrics.jsonl", text.encode())
    world.clock.advance(16 * 60 - 100)
    world.clock.advance(100)
    run = world.runs.get(name)
    world.runs.update(run, timeout_seconds=7200)
    (decision,) = sweep.sweep(replace(world.system, rules=Rules(cancel_idle_gpus=cancels)))
    assert any("GPUs have been idle" in words for words in decision.findings) == told
    world.run_until_idle()
    assert world.jobs.jobs[name].raw == state


MOVING = replace(ROUTE, move_to="steady", move_after=2, move_within_seconds=3600)


def lose_nodes(world: World, name: str, times: int) -> None:
    for _ in range(times):
        for raw in ("Running", "Queued"):
            world.clock.advance(60)
            world.job_goes(name, raw)
            world.deliver_all()
            world.run_until_idle()


def test_a_run_that_keeps_losing_its_nodes_moves_once(tmp_path: Path) -> None:
    """After so many preemptions within the time, a run goes on from its checkpoints on the cluster that its route
    names, as one new run that is submitted there; the old one ends with that as its reason. Before them it stays."""
    world = World(trainers_folder(tmp_path), [MOVING])
    world.jobs.clusters.add("steady")
    world.clusters.clusters["steady"] = Cluster("steady", 0, 4, 120, tier="dedicated")
    world.upload("mnist/a/1.bin")
    world.in_flight.clear()  # its event is lost: the drop makes no run of its own
    run = ask.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"), owner="ada")
    world.run_until_idle()
    lose_nodes(world, run.name, 1)
    sweep.sweep(world.system)
    assert world.runs.get(run.name).value.cancel_asked_at is None
    lose_nodes(world, run.name, 1)
    for _ in range(2):
        sweep.sweep(world.system)
    world.run_until_idle()
    (moved,) = [r for r in world.runs.newest() if r.name != run.name]
    spec = world.jobs.jobs[moved.name].spec
    assert (moved.cluster, moved.continues, moved.owner, spec["compute"]) == (
        "steady", run.name, "ada", "azureml:steady",
    )  # fmt: skip
    checkpoints = [world.jobs.jobs[name].spec["outputs"]["checkpoints"]["path"] for name in (run.name, moved.name)]
    assert checkpoints[0] == checkpoints[1]
    assert world.jobs.jobs[run.name].raw == "Canceled"
    world.job_goes(run.name, "Canceled")
    world.deliver_all()
    world.run_until_idle()
    why = f"It lost its nodes 2 times within 1 h. It goes on as run {moved.name} on steady."
    assert world.runs.get(run.name).value.reason == why


def test_preemptions_long_ago_move_nothing(tmp_path: Path) -> None:
    """Only those within the route's time count."""
    world = World(trainers_folder(tmp_path), [MOVING])
    world.upload("mnist/a/1.bin")
    world.in_flight.clear()  # its event is lost: the drop makes no run of its own
    run = ask.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"))
    world.run_until_idle()
    lose_nodes(world, run.name, 1)
    world.clock.advance(3600)
    lose_nodes(world, run.name, 1)
    sweep.sweep(world.system)
    assert len(world.runs.newest()) == 1
