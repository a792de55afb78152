"""Why a run has not started: each reason with its text, and what Azure's quota messages contain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.show import clusters as show_clusters
from shared.adapters.azureml.failures import allocation_error
from shared.api import queries, status
from shared.api.requests import RunListQuery
from shared.clusters.model import AllocationError, Cluster
from shared.clusters.waiting import refusal, why_waiting
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest
from shared.runs.model import Moment, Run, RunState
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
QUEUED = Run.of(
    name="r",
    drop="",
    route="",
    fingerprint="",
    experiment="e",
    cluster="c",
    nodes=2,
    created_at=NOW,
    state=RunState.QUEUED,
    job="r",
    history=(Moment(RunState.QUEUED, NOW),),
)
EMPTY = Cluster("c", 0, 4, 120)
ARM = (
    "QuotaExceeded: Operation could not be completed as it results in exceeding approved standardNCSv3Family Cores "
    "quota. Additional details - Deployment Model: Resource Manager, Location: westeurope, Current Limit: 10, Current "
    "Usage: 6, Additional Required: 12, (Minimum) New Limit Required: 18."
)
REGIONAL = (
    "OperationNotAllowed: Operation results in exceeding quota limits of Total Regional Cores. Maximum allowed: 20, "
    "Current in use: 18, Additional requested: 4."
)
FAMILY = (
    "The specified subscription has a Standard DSv2 family vCPU quota of 10 and is less than the requested job node "
    "count of 6 which maps to 12 vCPUs."
)


def error(words: str) -> AllocationError:
    """Return the allocation error that the adapter makes of this Azure message."""
    return allocation_error("", words)


@pytest.mark.parametrize(
    ("run", "cluster", "ahead", "code", "words"),
    [
        (changed(QUEUED, job="", state=RunState.RECEIVED), EMPTY, [], "submission", "being submitted"),
        (QUEUED, None, [], "broken", "no cluster c"),
        (changed(QUEUED, nodes=9), EMPTY, [], "too_many_nodes", "at most 4"),
        (QUEUED, replace(EMPTY, errors=(error(ARM),)), [], "quota", "6 of 10 cores"),
        (QUEUED, replace(EMPTY, errors=(error("AllocationFailed: No capacity."),)), [], "broken", "No capacity."),
        (QUEUED, replace(EMPTY, errors=(error(ARM),), idle_nodes=2), [], "allocating", "2 idle"),
        (QUEUED, replace(EMPTY, busy_nodes=4), ["other", "third"], "other_run", "other and 1 more are ahead of it"),
        (QUEUED, replace(EMPTY, busy_nodes=2), ["other"], "allocating", "0 idle, 0 being allocated"),
        (QUEUED, replace(EMPTY, target_nodes=2), [], "allocating", "2 nodes of c: 0 idle, 2 being allocated"),
    ],
)
def test_what_a_run_waits_for(run: Run, cluster: Cluster | None, ahead: list[str], code: str, words: str) -> None:
    """A run waits for its submission, the cluster's size, a quota, Azure ML's errors, earlier runs, or starting
    nodes."""
    found = why_waiting(run, cluster, ahead)
    assert found.code == code
    assert words in found.why


def test_nodes_on_their_way_are_waited_for_since_they_were_asked_for() -> None:
    """While Azure ML resizes, `since` is Azure ML's own time; otherwise it is the time of the run's last step."""
    began = NOW + timedelta(seconds=30)
    resizing = replace(EMPTY, allocation="Resizing", allocation_since=began)
    assert why_waiting(QUEUED, resizing, []).since == began
    assert why_waiting(QUEUED, replace(resizing, allocation="Steady"), []).since == NOW


@pytest.mark.parametrize(
    ("words", "family", "used", "limit"),
    [
        (ARM, "standardNCSv3Family", 6, 10),
        (REGIONAL, "Total Regional", 18, 20),
        (FAMILY, "Standard DSv2", None, 10),
        ("QuotaExceeded: Some quota is reached.", "", None, None),
    ],
)
def test_azures_words_about_a_quota(words: str, family: str, used: int | None, limit: int | None) -> None:
    """Family, use and limit are parsed from Azure's sentences; the sentences themselves are kept unchanged."""
    found = refusal(replace(EMPTY, errors=(error(words),)), 1)
    assert found is not None
    assert (found.code, found.family, found.used, found.limit, found.words) == ("quota", family, used, limit, words)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.upload("mnist/a/1.bin")
    return made


def submitted(world: World) -> str:
    run = create.create_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"))
    world.run_until_idle()
    return run.name


def test_many_runs_that_wait_cost_one_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API gives each waiting run's reason with at most one request to Azure ML in five seconds, for any number
    of runs."""
    world.clusters.clusters["cpu-cluster"] = replace(EMPTY, name="cpu-cluster", busy_nodes=4)
    first, second = submitted(world), submitted(world)
    calls: list[int] = []
    listed = world.clusters.list

    def counted() -> list[Cluster]:
        calls.append(1)
        return listed()

    monkeypatch.setattr(world.clusters, "list", counted)
    told = {run["run"]: run["waiting"] for run in queries.runs(world.system, RunListQuery(details=True))["runs"]}
    assert told[first]["code"] == "allocating"
    assert told[second]["code"] == "other_run"
    assert first in told[second]["why"]
    assert queries.run(world.system, second)["waiting"]["code"] == "other_run"
    assert len(calls) == 1
    world.jobs.down = True
    world.clock.advance(11)
    assert queries.run(world.system, second)["waiting"]["code"] == "no_answer"
    world.jobs.down = False
    world.clock.advance(11)
    world.job_goes(first, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert queries.run(world.system, first)["waiting"] is None


def test_a_dry_run_says_it_before_anything_is_sent(world: World) -> None:
    """A dry run's reasons include what Azure ML currently refuses the cluster, in Azure ML's words."""
    world.clusters.clusters["cpu-cluster"] = replace(EMPTY, name="cpu-cluster", errors=(error(ARM),))
    plan = dry_run(world.system, RunRequest(template="mnist", data="drops/mnist/a"))
    assert [reason["code"] for reason in plan["reasons"]] == ["quota"]
    assert "standardNCSv3Family" in plan["reasons"][0]["message"]


def test_clusters_tell_who_waits_for_them(world: World) -> None:
    """Each cluster lists the runs that wait for its nodes, longest wait first, with time and reason."""
    first = submitted(world)
    world.clock.advance(60)
    second = submitted(world)
    [cluster] = status.list_clusters(world.system)
    assert [run["run"] for run in cluster["waiting"]] == [first, second]
    assert "nodes" in cluster["waiting"][0]["why"]
    world.job_goes(first, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert [run["run"] for run in status.list_clusters(world.system)[0]["waiting"]] == [second]


def test_a_long_waiting_list_says_how_long_it_is(world: World) -> None:
    """Only the first waiting runs are listed, but all are counted; the command line says how many it left out."""
    names = [submitted(world) for _ in range(status.LISTED + 2)]
    rows = status.list_clusters(world.system)
    assert (len(rows[0]["waiting"]), rows[0]["waiting_runs"]) == (status.LISTED, len(names))
    out = StringIO()
    Console(file=out, width=200).print(show_clusters.many(rows))
    assert f"the longest first, 10 of {len(names)} shown" in out.getvalue()
    assert sum(line.startswith(tuple(names)) for line in out.getvalue().splitlines()) == 10


def test_a_waiting_run_tells_when_it_will_begin(world: World) -> None:
    """A run is expected to start when the run before it reaches the duration of the last similar run. The expected
    time stays the same while time passes."""

    def goes(name: str, *states: str) -> None:
        for state in states:
            world.clock.advance(100)
            world.job_goes(name, state)
            world.deliver_all()
            world.run_until_idle()

    goes(submitted(world), "Running", "Completed")
    first = submitted(world)
    goes(first, "Running")
    began = world.clock()
    world.clusters.clusters["cpu-cluster"] = replace(EMPTY, name="cpu-cluster", busy_nodes=4)
    second = submitted(world)
    drops_own, row = status.list_clusters(world.system)[0]["waiting"]  # the drop has become a run by now
    assert datetime.fromisoformat(drops_own["expected_at"]) == began + timedelta(seconds=100)
    expected = began + timedelta(seconds=200)
    assert (row["run"], datetime.fromisoformat(row["expected_at"])) == (second, expected)
    world.clock.advance(60)
    assert datetime.fromisoformat(queries.run(world.system, second)["waiting"]["expected_at"]) == expected
