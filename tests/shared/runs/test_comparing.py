"""Selecting and comparing runs: conditions, names, differences, and the one-line summary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.api import queries, rows
from shared.api.requests import RunListQuery
from shared.drops import find_name
from shared.drops.model import Drop, DropState
from shared.jobs.model import JobFailure
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.runs.model import Moment, Run, RunState
from shared.runs.views.compare import compare
from shared.runs.views.run_filter import condition
from shared.runs.views.summary import best_metric, cause, duration_seconds, value_of
from tests.fakes.parts import changed
from tests.fakes.world import ROUTE, World, trainers_folder

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)


def run(name: str = "mnist-0000000000000001", **fields: Any) -> Run:
    known = {"parameters": {"lr": 0.05, "epochs": 2}, "best_metrics": {"test_accuracy": 0.95, "train_loss": 0.1}}
    made = Run.of(
        name=name,
        drop="mnist/a",
        route="mnist",
        fingerprint="f" * 64,
        experiment="digits",
        cluster="cpu-cluster",
        nodes=2,
        created_at=NOW,
    )
    return changed(made, **{**known, "state": RunState.COMPLETED, **fields})


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("lr<0.1 and accuracy>0.9", True),
        ("accuracy>96%", False),
        ("lr=0.05", True),
        ("lr!=0.05 or epochs>=2", True),
        ("not (state=failed or loss>1)", True),
        ("drop~mnist and team=vision", True),
        ("team != 'vision'", False),
        ("nothing<1", False),
        ("not nothing<1", True),
        ("state<3", False),
    ],
)
def test_a_condition_is_read(text: str, holds: bool) -> None:
    """Parameters, best metrics, fields and tags can be compared; a missing value makes a comparison false."""
    wanted = run(tags={"team": "vision"})
    assert condition(text)(partial(value_of, wanted)) is holds


@pytest.mark.parametrize("text", ["lr <", "and", "lr 3", "(lr<1", "lr<1 lr>0", "", '"', "(" * 50 + "lr<1"])
def test_a_broken_condition_says_where(text: str) -> None:
    """An invalid condition is refused with the place and an example."""
    with pytest.raises(Impossible, match="condition"):
        condition(text)


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab lr<>=!~()'\"1.0 andornot"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text raises any other error, and a parsed condition can be evaluated on any run."""
    try:
        wanted = condition(text)
    except Impossible:
        return
    assert wanted(partial(value_of, run())) in (True, False)


def test_what_is_different_is_told() -> None:
    """A value is different unless all runs have the same; a metric's best value follows its own direction."""
    one = run()
    two = run("mnist-0000000000000002", parameters={"lr": 0.1, "epochs": 2}, best_metrics={"train_loss": 0.2})
    told = compare([one, two], NOW)
    assert {row["name"]: row["values"] for row in told["different"]} == {"lr": [0.05, 0.1]}
    assert told["metrics"] == [
        {"name": "test_accuracy", "values": [0.95, None], "best": 0},
        {"name": "train_loss", "values": [0.1, 0.2], "best": 0},
    ]


def test_a_run_in_a_line() -> None:
    """The best metric is one of held-out data if there is one; the duration begins with the first node."""
    began = (Moment(RunState.RECEIVED, NOW), Moment(RunState.RUNNING, NOW + timedelta(seconds=30)))
    done = run(history=(*began, Moment(RunState.COMPLETED, NOW + timedelta(seconds=90))))
    assert (best_metric(done), duration_seconds(done)) == (("test_accuracy", 0.95), 60)
    assert best_metric(run(best_metrics={"train_loss": 0.1, "steps": 3})) == ("train_loss", 0.1)
    assert best_metric(run(best_metrics={})) is None


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("Traceback ...\nprocess 1: bad data: /in/x: found none", "/in/x: found none"),
        ("usage: train.py [-h]\ntrain.py: error: unrecognized --x\nmember: process 7 ended with 2", "unrecognized --x"),
        ("Traceback (most recent call last):\n  File x\nValueError: no such layer", "ValueError: no such layer"),
        ("something odd", "something odd"),
    ],
)
def test_the_cause_is_the_trainers_own_sentence(log: str, sentence: str) -> None:
    """A failure shows the trainer's sentence, not that a user process has exited."""
    head = "Execution failed. User process 'python' exited with status code 2. Please check log file"
    assert cause(run(state=RunState.FAILED, reason=head, failure=JobFailure(tail=log))) == sentence
    old = run(state=RunState.FAILED, reason=f"{head}\nstd_log.txt:\n{log}")  # a row of the previous version
    assert cause(old) == sentence
    assert cause(run(state=RunState.FAILED, reason="No such image.")) == "No such image."


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path), [ROUTE])
    accuracies = {"mnist-aa00000000000001": 0.9, "mnist-aa00000000000002": 0.97, "mnist-bb00000000000003": 0.8}
    for number, (name, accuracy) in enumerate(accuracies.items()):
        best = {"test_accuracy": accuracy, "test_loss": accuracy}
        world.runs.insert(run(name, best_metrics=best, created_at=NOW + timedelta(minutes=number)))
    return world


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mnist-aa00000000000001", "mnist-aa00000000000001"),
        ("mnist-bb", "mnist-bb00000000000003"),
        ("@latest", "mnist-bb00000000000003"),
        ("mnist@latest", "mnist-bb00000000000003"),
        ("digits@best:accuracy", "mnist-aa00000000000002"),
        ("@best:test_loss", "mnist-bb00000000000003"),
    ],
)
def test_a_name_finds_its_run(world: World, text: str, found: str) -> None:
    """A run is found by its whole name, a prefix, or as the newest or best of all, of a route or of an experiment."""
    assert find_name.find(world.system, text) == find_name.FoundName(found, "")


def test_a_drop_is_found_by_its_beginning_among_any_number(world: World) -> None:
    """The only drop with a prefix is found behind two thousand drops whose names come before it."""
    for number in range(2000):
        world.drops.insert(Drop(DropKey("mnist", f"day-{number:04}"), DropState.SEALED, "", NOW))
    world.drops.insert(Drop(DropKey("mnist", "night"), DropState.SEALED, "", NOW, run="mnist-aa00000000000001"))
    assert find_name.find(world.system, "mnist/nig") == find_name.FoundName("mnist-aa00000000000001", "mnist/night")
    with pytest.raises(Conflict, match=r"prefix of mnist/day-0000, .* and more"):
        find_name.find(world.system, "drops/mnist/day")


def test_a_name_that_finds_nothing_says_what_was_meant(world: World) -> None:
    """An ambiguous prefix lists the runs; a typo names the nearest run; an unknown metric lists the existing ones."""
    with pytest.raises(Conflict, match="mnist-aa00000000000001, mnist-aa00000000000002"):
        find_name.find(world.system, "mnist-aa")
    with pytest.raises(NotFound, match="Did you mean 'mnist-bb00000000000003'"):
        find_name.find(world.system, "mnst-bb00000000000003")
    with pytest.raises(NotFound, match="Did you mean 'mnist-bb00000000000003'"):
        find_name.find(world.system, "mnist-bc")
    with pytest.raises(NotFound, match="There are: test_accuracy, test_loss"):
        find_name.find(world.system, "@best:f1")
    with pytest.raises(NotFound, match="Did you mean 'mnist'"):
        find_name.find(world.system, "mnits@latest")


def test_a_list_obeys_its_condition(world: World) -> None:
    """GET /api/runs?where= returns the runs for which the condition holds."""
    told = queries.runs(world.system, RunListQuery(where="accuracy>=0.9 and lr<1"))
    assert [row["run"] for row in told["runs"]] == ["mnist-aa00000000000002", "mnist-aa00000000000001"]


def test_a_condition_that_no_run_meets_names_what_no_run_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled metric gets the nearest name as a hint; a value that no run reaches gets no hint."""
    told = queries.runs(world.system, RunListQuery(where="acuracy>=0.9"))
    assert (told["runs"], told["hint"]) == ([], "No run has 'acuracy'. Did you mean 'accuracy'?")
    assert "hint" not in queries.runs(world.system, RunListQuery(where="accuracy>2"))
    monkeypatch.setattr(world.runs, "SEEN", 1)
    page = queries.runs(world.system, RunListQuery(where="acuracy>=0.9"))
    while page["continue"]:
        assert "hint" not in page
        page = queries.runs(world.system, RunListQuery(where="acuracy>=0.9", token=page["continue"]))
    assert page["hint"] == told["hint"], "the last page of a long search has the hint, too"


@pytest.mark.parametrize(
    ("metrics", "headline"),
    [
        ({"val/Acc": 0.9, "acc": 1.0, "loss": 0.1}, "val/Acc"),
        ({"f1": 0.5, "loss": 0.1}, "f1"),
        ({"score": 3.0}, "score"),
        ({"score": 3.0, "rate": 1.0}, None),
        ({}, None),
    ],
)
def test_one_metric_speaks_for_a_run_wherever_it_is_listed(metrics: dict[str, float], headline: str | None) -> None:
    """The command line and the page's row show the same metric, by one rule."""
    one = run("mnist-0000000000000001", best_metrics=metrics)
    best = best_metric(one)
    assert (best and best[0]) == headline
    assert rows._row(one)["headline"] == headline
