"""Node counts for the time when the app did not count come from the workspace's own counts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.clusters import scaling
from shared.clusters.model import Cluster, NodeCounts
from shared.clusters.samples import HOLDS
from shared.clusters.uncounted import WORKSPACE, samples_of
from shared.kernel.errors import Unavailable
from shared.money.paid import paid
from tests.fakes.world import World, trainers_folder

CLUSTER = Cluster("cpu-cluster", 0, 4, 120, vm_size="Standard_D2_v3", tier="dedicated")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.clusters.clusters["cpu-cluster"] = CLUSTER
    scaling.scale_clusters(made.system)
    return made


def counted(world: World, minutes: int, *running: int) -> None:
    """Set the workspace's own counts of running nodes, for equal parts of the next minutes."""
    each = minutes // len(running)
    world.clusters.counts["cpu-cluster"] = [
        NodeCounts(world.clock() + timedelta(minutes=n + 1), running=running[min(n // each, len(running) - 1)])
        for n in range(minutes - 1)
    ]


def hours(world: World, minutes: int) -> tuple[float, float]:
    """Return the paid and the unknown node hours of the last minutes."""
    until = world.clock()
    since = until - timedelta(minutes=minutes)
    samples = list(world.samples.between("cpu-cluster", since, until + timedelta(seconds=1)))
    found = paid(samples, [], since, until)
    nodes = sum(each.spell.nodes * (each.spell.end - each.spell.begin).total_seconds() for each in found)
    return nodes / 3600, sum(each.unknown_seconds for each in found) / 3600


def test_a_gap_has_what_the_workspace_counted(world: World) -> None:
    """In two hours without the app, three nodes ran for an hour, then none: the hour is paid, and nothing is
    unknown."""
    counted(world, 120, 3, 0)
    world.clock.advance(120 * 60)
    scaling.scale_clusters(world.system)
    known, unknown = hours(world, 120)
    assert known == pytest.approx(3.0, abs=0.1)
    assert unknown == pytest.approx(0.0, abs=0.1)


def test_minutes_that_the_workspace_did_not_count_stay_unknown(world: World) -> None:
    """The workspace counted only the first of two hours."""
    counted(world, 60, 2)
    world.clock.advance(120 * 60)
    scaling.scale_clusters(world.system)
    known, unknown = hours(world, 120)
    assert known == pytest.approx(2.0, abs=0.6)
    assert unknown > 1


def test_checks_without_a_gap_ask_for_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check without a gap, and the first check of a cluster, do not read the workspace's counts."""
    asked: list[Any] = []

    def noted(*about: Any) -> tuple[NodeCounts, ...]:
        asked.append(about)
        return ()

    monkeypatch.setattr(world.clusters, "node_counts", noted)
    for _ in range(3):
        world.clock.advance(300)
        scaling.scale_clusters(world.system)
    assert asked == []
    world.clock.advance(HOLDS.total_seconds() + 1)
    scaling.scale_clusters(world.system)
    assert len(asked) == 1


def test_without_an_answer_the_check_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any) -> Any:
        raise Unavailable("Azure Monitor does not answer")

    monkeypatch.setattr(world.clusters, "node_counts", silent)
    world.clock.advance(7200)
    (decision,) = scaling.scale_clusters(world.system)
    assert decision.code == "at_zero"


def test_few_samples_say_the_same_as_many_counts(world: World) -> None:
    """Only changes and one count per ten minutes are stored, so no sample is used beyond a count's validity."""
    begin = world.clock()
    counts = [NodeCounts(begin + timedelta(minutes=n), running=2 if n < 35 else 0, idle=0) for n in range(1, 60)]
    found = list(samples_of(CLUSTER, counts, begin, begin + timedelta(hours=1)))
    assert [(int((sample.at - begin).total_seconds() / 60), sample.running) for sample in found] == [
        (1, 2), (11, 2), (21, 2), (31, 2), (35, 0), (45, 0), (55, 0),
    ]  # fmt: skip
    assert {(sample.vm_size, sample.maximum, sample.seen_by) for sample in found} == {("Standard_D2_v3", 4, WORKSPACE)}
