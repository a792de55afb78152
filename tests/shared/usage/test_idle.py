"""Idle GPUs are reported, and their run is canceled if the administrator configured that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.clusters import scaling
from shared.kernel.settings import Rules
from shared.usage.idle import LATE, idle
from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage
from tests.fakes.world import World, trainers_folder
from tests.shared.usage.test_reading import azure_monitor, running

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
QUIET = timedelta(minutes=15)


def gpu(*values: float, until: datetime = NOW, device: str = "0") -> NodeSeries:
    """Return a GPU with one sample a minute, the last at `until`."""
    times = (until - timedelta(minutes=n) for n in reversed(range(len(values))))
    points = tuple(Measurement(at, value, 100.0) for at, value in zip(times, values, strict=True))
    return NodeSeries(Metric.GPU, "n", device, points)


def test_gpus_that_did_nothing_for_the_time_are_idle() -> None:
    """A GPU that was busy before the time counts as idle; so does one with a short peak within a minute."""
    assert idle(NodeUsage((gpu(90, *[2.0] * 15),)), NOW, QUIET, 5) == (
        "Its GPUs have been idle for 15 min: at most 2 % of their time in use."
    )


@pytest.mark.parametrize(
    "usage",
    [
        NodeUsage(),
        NodeUsage((gpu(*[2.0] * 14),)),  # not long enough
        NodeUsage((gpu(*[2.0] * 14, 6.0),)),  # one busy minute
        NodeUsage((gpu(*[0.0] * 15), gpu(*[50.0] * 15, device="1"))),  # one of two GPUs is busy
        NodeUsage((gpu(*[0.0] * 15, until=NOW - LATE - timedelta(minutes=1)),)),  # no new sample
    ],
)
def test_other_gpus_are_not(usage: NodeUsage) -> None:
    assert idle(usage, NOW, QUIET, 5) is None


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    made.jobs.vm_sizes["cpu-cluster"] = "Standard_NC4as_T4_v3"
    return made


@pytest.mark.parametrize(
    ("rules", "busy", "told", "state"),
    [
        (Rules(), 2.0, True, "Running"),
        (Rules(cancel_idle_gpus=True), 2.0, True, "Canceled"),
        (Rules(cancel_idle_gpus=True), 60.0, False, "Running"),
        (Rules(cancel_idle_gpus=True, idle_gpu_percent=1.0), 2.0, False, "Running"),
        (Rules(cancel_idle_gpus=True, idle_gpus_after=timedelta(minutes=30)), 2.0, False, "Running"),
        (Rules(cancel_idle_gpus=True, dry_run=True), 2.0, True, "Running"),
    ],
)
def test_a_run_with_idle_gpus_is_told_of_or_ended(
    world: World, rules: Rules, busy: float, told: bool, state: str
) -> None:
    """The settings say how busy, for how long, and whether the run ends."""
    name = running(world)
    world.clock.advance(20 * 60)
    azure_monitor(world).used[name] = NodeUsage((gpu(*[busy] * 18, until=world.clock()),))
    (decision,) = scaling.scale_clusters(replace(world.system, rules=rules))
    assert any("GPUs have been idle" in words for words in decision.findings) == told
    world.run_until_idle()
    assert world.jobs.jobs[name].raw == state


def test_azure_monitor_is_asked_once_in_five_minutes(world: World) -> None:
    """This holds however often the timer runs; only runs that have run long enough are measured."""
    name = running(world)
    scaling.scale_clusters(world.system)
    assert azure_monitor(world).requests == []
    world.clock.advance(20 * 60)
    for _ in range(10):
        scaling.scale_clusters(world.system)
        world.clock.advance(60)
    assert azure_monitor(world).requests == [(name,)] * 2


def test_runs_without_gpus_are_not_asked_about(world: World) -> None:
    world.jobs.vm_sizes["cpu-cluster"] = "Standard_D2_v3"
    running(world)
    world.clock.advance(20 * 60)
    scaling.scale_clusters(world.system)
    assert azure_monitor(world).requests == []
