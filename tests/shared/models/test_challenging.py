"""A route's champion: a challenger wins only with a better metric on the same data; any other outcome has a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from shared.drops.find_name import find
from shared.drops.retrain import train_again
from shared.jobs.metric_goal import Goal
from shared.jobs.readers.azureml import read_job
from shared.jobs.route_model import RouteModel
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.models import api
from shared.models.challenge import challenge, is_decided, judge
from shared.models.decide import ChangeRequest
from shared.models.goal import goal_for
from shared.models.messages import Challenge
from shared.models.model import Model, Version
from shared.models.promote import let_go, point, promote_run, undo
from shared.notices.subscribe import SubscriptionSpec, subscribe
from shared.runs.model import Measured, Run
from tests.fakes.world import ROUTE, TEMPLATE, World, trainers_folder
from tests.shared.models.champions import KEY, RULE, again, champion, dropped, ends, settle
from tests.shared.models.test_challenge_rules import run


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, model=RULE)])


def test_the_metric_that_decides_comes_first(world: World) -> None:
    """In answers about a model and in the chain of `why`, the metric that compares versions comes first, then other
    metrics of the model, and the training's pace last."""
    rows = {
        "step": 1,
        "data_wait_share": 0.1,
        "epoch_seconds": 2.0,
        "loss": 0.3,
        "test_accuracy": 0.9,
        "test_loss": 0.4,
    }
    world.upload("mnist/a/1.bin", b"1")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    settle(world)
    stored = world.drops.get(KEY)
    assert stored is not None
    ends(world, stored.value.run, 0.9, rows=json.dumps(rows).encode())
    (version,) = api.get_model(world.system, "churn")["versions"]
    assert version["judged_by"] == ["test_accuracy"]
    assert list(version["metrics"]) == ["test_accuracy", "test_loss", "loss", "data_wait_share", "epoch_seconds"]
    links = {link["link"]: link["says"] for link in api.explain_version(world.system, "churn", "1")["links"]}
    assert "; test_accuracy 0.9, test_loss 0.4, loss 0.3" in links["run"]


def test_the_champion_stays_unless_it_is_beaten_on_the_same_data(world: World) -> None:
    """The first run wins; a gain below `by` loses, a gain of `by` wins; on other data there is no verdict. Each has
    a reason."""
    first = dropped(world, 0.90)
    assert champion(world) == first.name
    again(world, 0.91, "little")
    assert champion(world) == first.name
    better = again(world, 0.93, "better")
    assert champion(world) == better.name
    lines = [(line.what, line.after, line.run) for line in reversed(world.models.history("churn"))]
    assert lines[0:2] == [("version", 1, ""), ("alias", 1, first.name)]
    assert [what for what, _, _ in lines[2:]] == ["lost", "version", "alias"]
    assert {line.by for line in world.models.history("churn")} == {"challenger"}
    other = dropped(world, 0.99, b"other")
    assert champion(world) == better.name
    published = [event for event in world.events.distinct() if event.kind == "AliasMoved"]
    assert [event.data["after"] for event in published] == [1, 2]
    version = world.models.version("churn", 2)
    verdict = judge(RULE, other, version, better, Goal.MAXIMIZE)
    assert "on other data: mnist/a@1, not mnist/a@2. Promote it by hand if it is better." in verdict.why


@pytest.fixture
def testing(tmp_path: Path) -> World:
    """Return a world whose route says how the champion is tested on other data."""
    template = {**TEMPLATE, "tags": {"trainyard.from_model": "--from-model"}}
    rule = replace(RULE, test={"epochs": 0})
    return World(trainers_folder(tmp_path), [replace(ROUTE, template=read_job(template), model=rule)])


def champion_test(world: World) -> Run:
    [test] = [run for run in world.runs.newest(20) if run.asked.experiment == "digits-tests"]
    return test


def told(world: World) -> str:
    """Return all notices so far."""
    return " ".join(body.decode() for _, body, _ in world.sender.posts)


@pytest.mark.parametrize(("of_champion", "wins"), [(0.85, True), (0.89, False)])
def test_a_champion_of_other_data_is_tested_on_its_challengers(testing: World, of_champion: float, wins: bool) -> None:
    """The champion's old metric does not count. A run with the challenger's job and code tests the champion's model
    on the new drop. That run challenges no one, and no name such as mnist@latest refers to it."""
    first = dropped(testing, 0.99)
    other = dropped(testing, 0.90, b"other")
    assert champion(testing) == first.name, "it is not tested yet"
    test = champion_test(testing)
    job = test.asked.request
    assert (job.inputs["epochs"], test.asked.from_run) == (0, first.name)
    assert job.inputs["data"] == other.asked.request.inputs["data"]
    assert str(job.command).endswith("--from-model {inputs.from_model}")
    assert job.code == testing.jobs.code_id(other.jobs.code)
    challenge(testing.system, Challenge(other.name))
    assert champion_test(testing).name == test.name, "asked again, the same run"
    ends(testing, test.name, of_champion)
    assert champion(testing) == (other.name if wins else first.name)
    assert find(testing.system, "mnist@latest").run == other.name
    assert len(testing.models.versions("churn")) == (2 if wins else 1)


def test_a_champion_that_cannot_be_tested_stays(testing: World) -> None:
    """The champion stays when its test fails, or when the data changed before the test started; the notice says
    which."""
    subscribe(testing.system, testing.post, SubscriptionSpec(["model"], "https://example.com/model"))
    first = dropped(testing, 0.90)
    dropped(testing, 0.95, b"other")
    test = champion_test(testing)
    testing.job_goes(test.name, "Failed")
    testing.deliver_all()
    settle(testing)
    assert f"churn/1 could not be tested on mnist/a@2: run {test.name} is failed. Promote it by hand" in told(testing)
    third = train_again(testing.system, KEY, "third")
    testing.blobs.put("drops", "mnist/a/1.bin", b"changed")
    ends(testing, third.name, 0.99)
    assert f"churn/1 can't be tested on mnist/a@2. The data of run {third.name} have changed" in told(testing)
    assert champion(testing) == first.name


def test_the_direction_is_declared_or_known_or_the_challenge_is_refused(world: World, tmp_path: Path) -> None:
    """The direction comes from the route, the sweep, the trainer, or the metric's name; otherwise the run loses,
    and the notice explains how to declare it. The model keeps its direction, and a route with another is
    refused."""
    unknown = RouteModel("churn", "gap")
    with pytest.raises(Impossible, match=r"It is unknown whether more or less gap is better. .*goal: maximize} or min"):
        goal_for(unknown, run({"gap": 1}), None)
    said = replace(run({"gap": 1}), measured=Measured(goals={"test_gap": "minimize"}))
    assert goal_for(unknown, said, None) is Goal.MINIMIZE
    assert goal_for(replace(unknown, goal=Goal.MAXIMIZE), said, None) is Goal.MAXIMIZE
    kept = Model("churn", goals={"gap": "minimize"})
    assert goal_for(unknown, run({"gap": 1}), kept) is Goal.MINIMIZE
    with pytest.raises(Impossible, match="were compared by minimize gap, but the route says maximize"):
        goal_for(replace(unknown, goal=Goal.MAXIMIZE), said, kept)
    dropped(world, 0.9)
    assert world.models.rows["churn"].value.goals == {"test_accuracy": "maximize"}


def test_the_metric_of_the_saved_weights_is_compared_and_kept(world: World) -> None:
    """The metric is not the best value during the training, but the trainer's value in model.json, or else the last
    value. The version and the verdict say which."""
    rows = b'{"step": 1, "test_accuracy": 0.99}\n{"step": 2, "test_accuracy": 0.60}\n'
    first = dropped(world, 0.90)
    peak = ends(world, train_again(world.system, KEY, "peak").name, 0.0, rows=rows)
    assert (peak.measured.best["test_accuracy"], peak.measured.best_steps) == (0.99, {"test_accuracy": 1})
    assert champion(world) == first.name
    word = b'{"metrics": {"test_accuracy": 0.95, "odd": "x"}, "step": 1, "goals": {"odd": "?"}}'
    said = ends(world, train_again(world.system, KEY, "said").name, 0.0, rows=rows, about=word)
    assert champion(world) == said.name
    assert (said.measured.saved, said.measured.saved_step, said.measured.goals) == ({"test_accuracy": 0.95}, 1, {})
    one, two = (world.models.version("churn", number) for number in (1, 2))
    assert one
    assert two
    assert (one.metrics, one.said_by_trainer) == ({"test_accuracy": 0.9}, ())
    assert (two.metrics, two.said_by_trainer) == ({"test_accuracy": 0.95}, ("test_accuracy",))
    assert "test_accuracy 0.95 (maximize, trainer), churn/1 has 0.9 on the same data" in two.why


def test_an_undone_decision_stays_undone(world: World) -> None:
    """After an undo, another delivery of the same message moves nothing; nor does one after a person moved the
    alias."""
    dropped(world, 0.90)
    better = again(world, 0.95, "better")
    asked = ChangeRequest(world.clock(), Person("ann"))
    undo(world.system, "churn", "production", asked)
    before = world.models.rows["churn"]
    challenge(world.system, Challenge(better.name))
    assert world.models.rows["churn"] == before
    undo(world.system, "churn", "production", asked)
    challenge(world.system, Challenge(better.name))
    assert world.models.rows["churn"].value.aliases == {}


def test_an_undone_decision_stays_undone_after_its_version_was_released(world: World) -> None:
    """The history names the run of each move, so a run is not judged again after its version was released."""
    dropped(world, 0.90)
    better = again(world, 0.95, "better")
    asked = ChangeRequest(world.clock(), Person("ann"))
    undo(world.system, "churn", "production", asked)
    let_go(world.models, world.clock, "churn", 2, asked)
    before = world.models.rows["churn"]
    challenge(world.system, Challenge(better.name))
    assert world.models.rows["churn"] == before


def test_a_lost_challenge_is_judged_once(world: World) -> None:
    """A run that lost to a champion does not win by a late second delivery, when a worse version is the champion."""
    dropped(world, 0.80)
    again(world, 0.95, "better")
    lost = again(world, 0.90, "lost")
    undo(world.system, "churn", "production", ChangeRequest(world.clock(), Person("ann")))
    challenge(world.system, Challenge(lost.name))
    assert champion(world) != lost.name
    assert is_decided(world.system, Challenge(lost.name))


def test_the_alias_moves_only_from_the_champion_that_was_judged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a better champion appears during a judgement, the run must beat the new champion. This also holds when
    the alias left the judged version and returned to it."""
    first, best = dropped(world, 0.80), again(world, 0.95, "best")
    one = world.models.version("churn", 1)
    assert one
    point(world.system, "churn", 1, "production", ChangeRequest(world.clock(), Person("ann")))
    late = train_again(world.system, KEY, "late")
    really, moves = world.models.version, [2]

    def overtaken(name: str, number: int) -> Version | None:
        found = really(name, number)
        if moves and number == 3:  # the version of `late` exists, and the alias has not moved yet
            point(world.system, name, moves.pop(), "production", ChangeRequest(world.clock(), Person("ann")))
        return found

    monkeypatch.setattr(world.models, "version", overtaken)
    ends(world, late.name, 0.90)
    assert not moves, "the champion changed in between"
    assert champion(world) == best.name != first.name
    assert world.models.history("churn")[0].what == "lost"


def test_a_version_of_the_routes_rule_says_so(world: World) -> None:
    """The app itself promoted the version: no client can claim that. A person of the same name without a sign-in is
    marked as a claim."""
    first = dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    promote_run(world.system, first.name, "other", "", ChangeRequest(world.clock(), Person("challenger")))
    claimed = world.models.version("other", 1)
    assert claimed
    for each, by_rule in ((version, True), (claimed, False)):
        proof = json.loads(world.blobs.read("output", f"{each.proof}/provenance.json", 1 << 20))["predicate"]
        assert proof["trainyard_model"]["promotedByRule"] is by_rule
        assert any(gap.startswith("Who promoted") for gap in proof["trainyard_not_known"]) is not by_rule


def test_a_route_may_accept_programs(tmp_path: Path) -> None:
    """A challenger whose files run code wins only if the routes file allows such files for this model."""
    program = b"cposix\nsystem\n(S'id'\ntR."
    for allowed in (False, True):
        (tmp_path / str(allowed)).mkdir()
        rule = replace(RULE, allow_code=allowed)
        world = World(trainers_folder(tmp_path / str(allowed)), [replace(ROUTE, model=rule)])
        world.complete("1.bin")
        ends(world, world.only_run().name, 0.9, program, name="model.pkl")
        assert (world.models.version("churn", 1) is not None) is allowed


def test_a_person_may_promote_what_lost(world: World) -> None:
    """The champion's rule applies to challengers only."""
    dropped(world, 0.9)
    lost = again(world, 0.5, "worse")
    promote_run(world.system, lost.name, "churn", "production", ChangeRequest(world.clock(), Person("ann")))
    assert champion(world) == lost.name


def test_the_drops_job_file_is_no_data(world: World) -> None:
    """`drop ... -p` writes a job file beside the same data, and the two runs are still compared."""
    first = dropped(world, 0.90)
    world.upload("mnist/a/job.yaml", b"inputs: {epochs: 3}")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(4):
        world.clock.advance(10)
        world.run_until_idle()
    stored = world.drops.get(KEY)
    assert stored
    assert stored.value.run != first.name
    second = ends(world, stored.value.run, 0.95)
    assert second.asked.fingerprint != first.asked.fingerprint
    assert champion(world) == second.name


@pytest.mark.parametrize(("alias", "asks"), [("production", True), ("staging", False)])
def test_a_protected_alias_needs_the_role(world: World, alias: str, asks: bool) -> None:
    """Promoting to, pointing and undoing a protected alias require the role before anything changes; so does
    `allow_code`."""
    run = dropped(world, 0.9)
    rule = replace(RULE, protect=("production",))
    world.system = replace(world.system, routes={"mnist": replace(world.system.routes["mnist"], model=rule)})
    asked: list[str] = []

    def refuse() -> None:
        asked.append(alias)
        raise Conflict("This needs the role trainyard.coder.", "denied")

    before, ann = world.models.rows["churn"], Person("ann")
    calls: list[Callable[[], object]] = [
        lambda: api.promote_run(world.system, "churn", api.PromoteRequest(run.name, alias), ann, refuse),
        lambda: api.move_alias(world.system, "churn", alias, api.AliasRequest(version=1), ann, refuse),
        lambda: api.move_alias(world.system, "churn", alias, api.AliasRequest(undo=True), ann, refuse),
    ]
    for call in calls:
        with pytest.raises(Conflict) if asks else nullcontext():
            call()
    assert (len(asked), world.models.rows["churn"] == before) == ((3, True) if asks else (0, False))
    with pytest.raises(Conflict):
        api.promote_run(world.system, "churn", api.PromoteRequest(run.name, allow_code=True), ann, refuse)
