"""A run's usage: from Azure Monitor while the run is live, and from its archive afterwards."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.kernel.errors import Unavailable
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from shared.usage.api import get_run_usage
from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage, UsageSummary
from shared.usage.reading import FILE, KEPT, archived, usage_of
from tests.fakes.usage import FakeNodeMetrics
from tests.fakes.world import World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


def azure_monitor(world: World) -> FakeNodeMetrics:
    found: FakeNodeMetrics = world.journals["node_metrics"]
    return found


def running(world: World) -> str:
    """Return a running run."""
    name = create.create_run(world.system, RunRequest(template="mnist", data="drops/shelf/a")).name
    goes(world, name, "Running")
    return name


def goes(world: World, name: str, status: str) -> None:
    world.run_until_idle()
    world.job_goes(name, status)
    world.deliver_all()
    world.clock.advance(4)
    world.run_until_idle()


def measure(world: World, name: str, minutes: int, **values: float) -> None:
    """Let Azure Monitor measure the run's node for this many minutes from now on."""
    times = [world.clock() + timedelta(minutes=n) for n in range(minutes)]
    series = (
        NodeSeries(Metric(metric), "n", "", tuple(Measurement(at, value, value) for at in times))
        for metric, value in values.items()
    )
    azure_monitor(world).used[name] = NodeUsage(tuple(series))


def ended(world: World, minutes: int = 30, **values: float) -> Run:
    """Return a run that ended after this many minutes, with Azure Monitor's samples of all of them."""
    name = running(world)
    measure(world, name, minutes, **(values or {"cpu": 40.0, "memory": 3000.0}))
    world.clock.advance(60 * minutes)
    goes(world, name, "Completed")
    return world.runs.get(name).value


def test_a_run_that_goes_on_is_asked_about_once_a_minute(world: World) -> None:
    """This holds for any number of readers: the samples are cached for the time between two of them."""
    name = running(world)
    measure(world, name, 5, cpu=40.0)
    world.clock.advance(300)
    run = world.runs.get(name).value
    for _ in range(10):
        assert usage_of(world.system, run).average(Metric.CPU) == 40
    assert azure_monitor(world).requests == [(name,)]
    world.clock.advance(60)
    usage_of(world.system, run)
    assert len(azure_monitor(world).requests) == 2


def test_a_run_without_nodes_is_not_asked_about(world: World) -> None:
    """This includes a run that ended before it had any."""
    name = create.create_run(world.system, RunRequest(template="mnist", data="drops/shelf/a")).name
    assert not usage_of(world.system, world.runs.get(name).value)
    assert azure_monitor(world).requests == []


def test_usage_is_archived_with_the_run(world: World) -> None:
    """The row and manifest have a summary, and a file has the values by minute; Azure Monitor is not asked again."""
    run = ended(world)
    found = run.feature(UsageSummary)
    assert found is not None
    assert (found.nodes, found.cpu, found.memory) == (1, 40, 3000)
    assert world.manifest(run)["run"]["usage"]["cpu"] == 40
    asked = len(azure_monitor(world).requests)
    azure_monitor(world).used.clear()
    assert len(usage_of(world.system, run).by_node(Metric.CPU)["n"]) == 30
    assert len(azure_monitor(world).requests) == asked


def test_what_came_late_is_read_from_azure_monitor(world: World) -> None:
    """Values arrive minutes late, so the archive lacks the last ones; after 93 days only the archive is left."""
    name = running(world)
    measure(world, name, 20, cpu=40.0)
    world.clock.advance(60 * 30)
    goes(world, name, "Completed")
    run, began = world.runs.get(name).value, world.clock() - timedelta(minutes=30)
    assert len(archived(world.system.blobs, run).by_node(Metric.CPU)["n"]) == 20
    later = tuple(Measurement(began + timedelta(minutes=n), 40.0, 40.0) for n in range(30))
    azure_monitor(world).used[name] = NodeUsage((NodeSeries(Metric.CPU, "n", "", later),))
    assert len(usage_of(world.system, run).by_node(Metric.CPU)["n"]) == 30
    world.clock.advance(KEPT.total_seconds() + 3600)
    assert len(usage_of(world.system, run).by_node(Metric.CPU)["n"]) == 20


def test_a_short_run_costs_no_request(world: World) -> None:
    """Azure measures once a minute."""
    name = running(world)
    measure(world, name, 1, cpu=40.0)
    goes(world, name, "Completed")
    assert world.runs.get(name).value.archive.at is not None
    assert azure_monitor(world).requests == []


def test_an_archive_never_waits_for_azure_monitor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Azure Monitor's answer the run is archived without usage; a later reader learns that it does not
    answer."""

    def silent(*_: Any) -> Any:
        raise Unavailable("Azure Monitor does not answer")

    name = running(world)
    monkeypatch.setattr(azure_monitor(world), "nodes", silent)
    world.clock.advance(1800)
    goes(world, name, "Completed")
    run = world.runs.get(name).value
    assert run.archive.at is not None
    assert run.feature(UsageSummary) is None
    with pytest.raises(Unavailable):
        usage_of(world.system, run)


def test_a_broken_file_is_no_usage(world: World) -> None:
    run = ended(world)
    world.blobs.put("output", f"{run.archive.output.removeprefix('output/')}/{FILE}", b"{]")
    assert not archived(world.system.blobs, run)


def test_the_answer_says_it_in_words(world: World) -> None:
    """The answer also says how the training spent its time, as far as it wrote that: a row without a share of
    saving spent no time on saving."""
    name = running(world)
    measure(world, name, 30, cpu=40.0, memory=3000.0, memory_in_all=56_000.0)
    rows = [{"step": n, "data_wait_share": 0.25, **({"save_share": 0.5} if n == 4 else {})} for n in range(5)]
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    world.blobs.put("azureml-blobstore", f"trainyard/{name}/metrics/metrics.jsonl", text)
    world.clock.advance(1800)
    answer = get_run_usage(world.system, name)
    assert answer["sentence"].startswith("1 node, processors 40 %, memory 3.0 of 56 GB")
    assert answer["sentence"].endswith("25 % of the time waiting for data, 10 % saving, 65 % computing")
    went = {"data": 0.25, "saving": 0.1, "others": None, "computing": 0.65}
    assert answer["time_went"] == pytest.approx(went)
    assert answer["summary"]["nodes"] == 1
    assert len(answer["samples"]) == 30
    assert answer["advice"] is None  # the cluster's machine is unknown
