"""The page's first view: what needs attention, what is running and what happened, also when parts are unavailable."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shared.api import today_items
from shared.api.rows import RowsQuery, rows
from shared.api.today import get_today
from shared.clusters.lease_model import Lease
from shared.clusters.model import Cluster
from shared.deadlines.model import Date, DeadlineTerms, Pace
from shared.diagnosis.causes import Cause, Certainty, Diagnosis
from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Unavailable
from shared.models.model import Alias, Model, Version
from shared.models.ports import Write
from shared.money.ledger import KINDS
from shared.pipelines.model import PipelineSteps, Step, StepState
from shared.runs.model import Cost, Moment, Run, RunState
from shared.sweeps.model import SweepSummary, TrialOf
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def today(world: World) -> dict[str, Any]:
    world.clock.advance(6)  # beyond what is cached
    return get_today(world.system, world.schedules)


def a_run(world: World, name: str, state: RunState, hours_ago: float = 1.0, **more: Any) -> Run:
    at = world.clock() - timedelta(hours=hours_ago)
    given = {"drop": "", "route": "mnist", "fingerprint": "", "experiment": "mnist", "cluster": "cpu-cluster"}
    history = (Moment(RunState.RUNNING, at), *([] if state is RunState.RUNNING else [Moment(state, at)]))
    return Run.of(**{"name": name, **given, "nodes": 1, "created_at": at, "state": state, "history": history, **more})


def needs(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["kind"], each["name"]) for each in told["needs"]]


def test_nothing_yet_says_so(world: World) -> None:
    """A deployment without runs and drops is empty until the first upload."""
    told = today(world)
    assert (told["empty"], told["unknown"], told["needs"]) == (True, {}, [])
    world.upload("mnist/a/1.bin")
    world.settle()
    assert not today(world)["empty"]


def test_a_failed_run_needs_somebody_until_it_is_repeated(world: World) -> None:
    """A failed run is listed with its diagnosis, or with its cause, such as the exception of its own code. Trials of a
    sweep, old failures, and runs whose drop has a model by now are not listed."""
    found = Diagnosis(Cause.CUDA_OOM, Certainty.CERTAIN, "Out of memory.")
    own = Diagnosis(Cause.USER_EXCEPTION, Certainty.CERTAIN, "The training's own code raised an exception.")
    for run in (
        a_run(world, "diagnosed", RunState.FAILED).having(found),
        a_run(world, "own", RunState.FAILED, 1.5, reason="It exited.\nstd_log.txt:\nValueError: no lr").having(own),
        a_run(world, "plain", RunState.FAILED, 2, reason="It exited with 3."),
        a_run(world, "trial", RunState.FAILED).having(TrialOf("sweep")),
        a_run(world, "old", RunState.FAILED, 24 * 8),
        a_run(world, "corrected", RunState.FAILED, 3, drop="mnist/a"),
        a_run(world, "better", RunState.COMPLETED, 2, drop="mnist/a"),
        a_run(world, "repeated", RunState.FAILED, 5),
        a_run(world, "again", RunState.RUNNING, 1, retry_of="repeated"),
    ):
        world.runs.insert(run)
    told = today(world)
    assert [(each["name"], each["why"]) for each in told["needs"]] == [
        ("diagnosed", "Out of memory."),
        ("own", "ValueError: no lr"),
        ("plain", "It exited with 3."),
    ]
    assert [run["run"] for run in told["running"]] == ["again"]


def test_each_kind_of_trouble_is_told_once(world: World) -> None:
    """A rejected drop, poison messages, a late run, and idle leased nodes are each listed once."""
    now = world.clock()
    world.drops.insert(Drop(DropKey("mnist", "bad"), DropState.REJECTED, "t", now, why="No images."))
    world.queues.put("drop-events-poison", '{"what": "is this"}')
    late = Date(DeadlineTerms(now + timedelta(hours=1)), Pace(0.25, late_since=now))
    world.runs.insert(a_run(world, "slow", RunState.RUNNING).having(late))
    world.clusters.clusters["gpu"] = Cluster("gpu", 0, 4, 120, nodes=2, idle_nodes=2)
    lease = Lease("20260101T000000-00000000", "gpu", 4, "ada", "a demo", now, now + timedelta(hours=2))
    world.leases.insert(lease)
    told = today(world)
    kinds = [("late", "slow"), ("rejected", "mnist/bad"), ("poison", "drop-events"), ("idle", "gpu")]
    assert needs(told) == kinds
    by_kind = {each["kind"]: each for each in told["needs"]}
    assert (by_kind["rejected"]["why"], by_kind["poison"]["messages"]) == ("No images.", 1)
    assert (by_kind["idle"]["nodes"], by_kind["idle"]["lease"]) == (2, lease.id)
    (running,) = told["running"]
    assert (running["done_share"], running["late"]) == (0.25, True)


def test_a_completed_run_is_compared_with_the_run_before(world: World) -> None:
    """The run's metric is compared in its direction; without a direction or a previous run there is no verdict."""
    values = [("first", 30, {"accuracy": 0.8}), ("second", 2, {"accuracy": 0.9}), ("third", 1, {"accuracy": 0.85})]
    for name, hours, metrics in values:
        measured = {"best_metrics": metrics, "last_metrics": metrics, "cost": Cost(1.0, 0.0, 0.0, 1.0, world.clock())}
        world.runs.insert(a_run(world, name, RunState.COMPLETED, hours, **measured))
    told = {each["run"]: each for each in today(world)["completed"]}
    assert set(told) == {"second", "third"}
    assert told["second"]["before"] == {"name": "first", "value": 0.8, "better": True}
    assert told["third"]["before"] == {"name": "second", "value": 0.9, "better": False}
    assert told["third"]["champion"] is None


def test_a_completed_run_is_compared_with_the_champion(world: World) -> None:
    """A run is compared with the version at the alias of its experiment's model, but not with itself. A run in
    between without the metric does not hide the previous run."""
    for name, hours, metrics in (("first", 30, {"accuracy": 0.8}), ("mute", 3, {}), ("last", 1, {"accuracy": 0.85})):
        world.runs.insert(a_run(world, name, RunState.COMPLETED, hours, best_metrics=metrics, last_metrics=metrics))
    other = a_run(world, "other", RunState.COMPLETED, 40, experiment="else")
    world.runs.insert(other)
    for model, run, accuracy in (("digits", "first", 0.8), ("others", "other", 0.1), ("own", "last", 0.85)):
        at = world.clock()
        version = Version(model, 7, run, at, "", "d", "s", metrics={"accuracy": accuracy})
        world.models.write(None, Write(Model(model, 7, 1, {"production": Alias(7, at)}), [], version))
    told = {each["run"]: each for each in today(world)["completed"]}
    assert told["last"]["champion"] == {"name": "digits/7", "value": 0.8, "better": True}
    assert told["last"]["before"] == {"name": "first", "value": 0.8, "better": True}
    assert told["mute"]["champion"] is None


def test_a_champion_is_at_the_alias_of_the_route(world: World) -> None:
    """The champion is the version at the route's alias, else at `production`, else at the alias that moved last."""
    at = world.clock()
    aliases = {"old": Alias(1, at), "production": Alias(2, at), "new": Alias(3, at + timedelta(hours=1))}
    route = SimpleNamespace(model=SimpleNamespace(name="routed", alias="old"))
    models = [Model("routed", 3, 1, aliases), Model("plain", 3, 1, aliases), Model("bare", 3, 1)]
    models.append(Model("odd", 3, 1, {name: aliases[name] for name in ("old", "new")}))
    found = today_items.champion_numbers(models, {"r": route})  # type: ignore[dict-item]
    assert sorted(found) == [("odd", 3), ("plain", 2), ("routed", 1)]


def test_how_far_a_run_is(world: World) -> None:
    """A pipeline shows the share of its completed steps; other runs show how many epochs they train."""
    steps = PipelineSteps((Step("a", StepState.COMPLETED), Step("b", StepState.RUNNING)))
    for run in (
        a_run(world, "steps", RunState.RUNNING, kind="pipeline").having(steps),
        a_run(world, "plain", RunState.RUNNING, parameters={"epochs": 5}),
    ):
        world.runs.insert(run)
    told = {each["run"]: each for each in today(world)["running"]}
    assert told["steps"]["done_share"] == 0.5
    assert (told["plain"]["done_share"], told["plain"]["epochs"]) == (None, 5)


def test_a_day_without_costs_is_free(world: World) -> None:
    """Days are identified by their date: the books may contain no day but today."""
    now = world.clock()
    day = {"day": now.date().isoformat(), **dict.fromkeys(KINDS, 0.5)}
    assert today_items.spent([day], now) == {"today": 2.5, "yesterday": 0.0}
    assert today_items.spent([day], now + timedelta(days=1)) == {"today": 0.0, "yesterday": 2.5}


def test_a_part_that_is_away_is_named_and_the_rest_is_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that could not be read is unknown, not empty."""
    world.runs.insert(a_run(world, "there", RunState.RUNNING))

    def away(*_: object, **__: object) -> Any:
        raise Unavailable("The models are away.")

    monkeypatch.setattr(world.system.models, "all", away)
    told = today(world)
    assert told["unknown"] == {"models": "The models are away."}
    assert [run["run"] for run in told["running"]] == ["there"]
    monkeypatch.setattr(world.system.blobs, "check", away)
    assert today(world)["unknown"] == {"storage": "The models are away."}


def test_a_row_of_the_list_says_why_and_of_which_sweep(world: World) -> None:
    """A row shows the cause of a failure, what a waiting run waits for, and a sweep's cost and trials."""
    sweep = SweepSummary(begun=3, ended=1, dollars=1.5, most=4)
    for run in (
        a_run(world, "failed", RunState.FAILED, reason="It exited with 3.\nlast lines"),
        a_run(world, "waits", RunState.QUEUED, history=(Moment(RunState.QUEUED, world.clock(), "No nodes."),)),
        a_run(world, "sweep", RunState.RUNNING, kind="sweep").having(sweep),
        a_run(world, "trial", RunState.RUNNING).having(TrialOf("sweep")),
    ):
        world.runs.insert(run)
    told = {row["run"]: row for row in rows(world.runs, world.clock, RowsQuery())["rows"]}
    assert (told["failed"]["why"], told["waits"]["why"]) == ("It exited with 3.", "No nodes.")
    assert (told["sweep"]["trials"], told["sweep"]["cost"], told["trial"]["sweep"]) == (3, 1.5, "sweep")
    assert (told["trial"]["trials"], told["failed"]["sweep"]) == (None, "")
    assert (told["sweep"]["done_share"], told["trial"]["done_share"]) == (0.25, None)


def test_the_answer_costs_few_requests(world: World) -> None:
    """The number of reads does not grow with the runs."""
    for number in range(150):
        world.runs.insert(changed(a_run(world, f"r-{number}", RunState.COMPLETED, 1 + number / 100), nodes=2))
    told = today(world)
    assert len(told["completed"]) == 50
