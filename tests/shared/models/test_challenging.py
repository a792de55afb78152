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
from shared.jobs.readers.place_text import read_asset
from shared.jobs.route_model import RouteModel
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.models import api
from shared.models.challenge import challenge, is_decided, judge
from shared.models.decide import ChangeRequest
from shared.models.goal import goal_for
from shared.models.messages import Challenge
from shared.models.model import Model, Version
from shared.models.promote import let_go, point, promote_run, undo
from shared.models.reproduce import compare, is_within, reproduce
from shared.notices.subscribe import SubscriptionSpec, subscribe
from shared.runs.intake.retry_and_continue import continue_run
from shared.runs.model import Measured, Run
from tests.fakes.world import ROUTE, TEMPLATE, World, trainers_folder
from tests.shared.models.test_challenge_rules import run

RULE = RouteModel("churn", "test_accuracy", 0.02)
KEY = DropKey("mnist", "a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, model=RULE)])


def ends(
    world: World,
    run: str,
    accuracy: float,
    weights: bytes = b"w",
    processor: str = "x86_64 A",
    rows: bytes = b"",
    about: bytes = b"",
    name: str = "model.safetensors",
) -> Run:
    """Complete the run with this metric and these weights, and handle all messages that follow."""
    world.run_until_idle()
    world.job_goes(run, "Completed")
    folder = f"trainyard/{run}"
    world.blobs.remove("azureml-blobstore", [f"{folder}/models/model.pt"])
    world.blobs.put("azureml-blobstore", f"{folder}/models/{name}", weights)
    row = rows or json.dumps({"step": 1, "test_accuracy": accuracy}).encode()
    if about:
        world.blobs.put("azureml-blobstore", f"{folder}/models/model.json", about)
    world.blobs.put("azureml-blobstore", f"{folder}/metrics/metrics.jsonl", row)
    node = {"processor": processor, "packages": {"torch": "2.13.0"}}
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run}/outputs/environment.json", json.dumps(node).encode())
    world.deliver_all()
    settle(world)
    return world.runs.get(run).value


def settle(world: World) -> None:
    for _ in range(3):
        world.run_until_idle()
        world.clock.advance(5)


def dropped(world: World, accuracy: float, content: bytes = b"1") -> Run:
    """Return the run of a drop, completed with this metric."""
    world.upload("mnist/a/1.bin", content)
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(2):
        world.clock.advance(4)
        world.run_until_idle()
    stored = world.drops.get(KEY)
    assert stored is not None
    return ends(world, stored.value.run, accuracy)


def again(world: World, accuracy: float, key: str) -> Run:
    """Return another run on the same data."""
    return ends(world, train_again(world.system, KEY, key).name, accuracy)


def champion(world: World) -> str:
    model = world.models.get("churn")
    assert model
    version = world.models.version("churn", model.value.aliases["production"].number)
    assert version
    return version.run


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


def test_a_reproduction_runs_the_recorded_parts_and_names_what_differs(world: World) -> None:
    """The reproduction uses the same code and environment ids on the same data; equal bytes are reported as equal,
    other bytes with the reason."""
    first = dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    remade = reproduce(world.system, version, Person("ann"))
    assert reproduce(world.system, version, Person("ann")).name == remade.name
    job = remade.asked.request
    assert job.code == world.jobs.code_id(first.jobs.code)
    assert job.environment == read_asset(first.jobs.environment)
    assert (remade.asked.drop, remade.asked.fingerprint) == (first.asked.drop, first.asked.fingerprint)
    with pytest.raises(Conflict, match="not archived yet"):
        compare(world.system, version, remade.name)
    ends(world, remade.name, 0.9)
    assert compare(world.system, version, remade.name).equal
    other = ends(world, train_again(world.system, KEY, "b").name, 0.8, b"W", "x86_64 B")
    compared = compare(world.system, version, other.name)
    assert not compared.equal
    assert compared.differs == ["The processor was x86_64 A, now it is x86_64 B.", "test_accuracy was 0.9, now 0.8."]


def test_a_metric_is_compared_with_the_scatter_of_its_repetitions(world: World) -> None:
    """Each repetition is a run of its own. From three repetitions on, the answer says whether the version is within
    their expected range."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    runs = [reproduce(world.system, version, Person("ann"), number) for number in (1, 2, 3)]
    assert len({run.name for run in runs}) == 3
    assert [reproduce(world.system, version, Person("ann"), number).name for number in (1, 2, 3)] == [
        run.name for run in runs
    ]
    values = (0.88, 0.91, 0.92)
    for each, value in zip(runs[:2], values, strict=False):
        ends(world, each.name, value, b"other")
    assert compare(world.system, version, runs[0].name).within is None
    ends(world, runs[2].name, values[2], b"other")
    compared = compare(world.system, version, runs[2].name)
    assert (compared.equal, compared.metric, compared.value, compared.within) == (False, "test_accuracy", 0.9, True)
    assert compared.repetitions == dict(zip([run.name for run in runs], values, strict=True))


def test_the_interval_is_that_of_the_textbook() -> None:
    """mean 10, s 1, n 4: 3.182 * sqrt(1.25) = 3.558. Equal repetitions predict exactly the same value."""
    spread = [10 - 1.5**0.5, 10.0, 10.0, 10 + 1.5**0.5]
    assert is_within(10 + 3.557, spread)
    assert not is_within(10 + 3.559, spread)
    assert (is_within(0.5, [0.5] * 3), is_within(0.51, [0.5] * 3), is_within(0.5, [0.5] * 2)) == (True, False, None)


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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Because there is no version of torch==2.13.0 and you require torch==2.13.0, we can conclude that your",
            r"package torch==2.13.0 of its environment is no longer available",
        ),
        ("ERROR: No matching distribution found for numpy==99.0", "package numpy==99.0 of its environment is"),
        ("Because line-kit was not found in the package registry and you", "package line-kit of its environment is"),
        ("exited with status code 1", r"is failed. .*exited with status code 1 Send the request again to retry\."),
    ],
)
def test_a_reproduction_that_fails_says_why_and_is_tried_again(world: World, said: str, told: str) -> None:
    """A package that no longer exists is named, as pip and uv name it; another request starts another run."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    remade = reproduce(world.system, version, Person("ann"))
    world.run_until_idle()
    world.job_goes(remade.name, "Failed", said)
    world.deliver_all()
    settle(world)
    with pytest.raises(Impossible, match=f"churn/1 was not trained again: .*{told}"):
        compare(world.system, version, remade.name)
    assert reproduce(world.system, version, Person("ann")).name != remade.name


def test_changed_data_are_named_before_anything_is_trained(world: World) -> None:
    """reproduce refuses, and names the changed and deleted files."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    world.blobs.put("drops", "mnist/a/1.bin", b"changed")
    with pytest.raises(Conflict, match=r"other data than drop mnist/a has now: mnist/a/1.bin changed"):
        reproduce(world.system, version, Person("ann"))


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


def test_a_file_of_any_name_is_compared_and_a_continued_run_is_refused(world: World) -> None:
    """Equal files are equal whatever their ending; files that only describe the model count separately. A run that
    continued another run was not trained from the beginning, so it is refused."""
    run = train_again_named(world, "model.odd")
    version = promote_run(world.system, run.name, "odd", "", ChangeRequest(world.clock(), Person("ann")))
    remade = reproduce(world.system, version, Person("ann"))
    ends(world, remade.name, 0.9, name="model.odd", about=b'{"note": 2}')
    compared = compare(world.system, version, remade.name)
    assert (compared.equal, compared.weights) == (True, {"models/model.odd": True})
    assert compared.others == ["models/model.json"]
    following = continue_run(world.system, run.name, {"epochs": 3})
    ends(world, following.name, 0.9)
    version = promote_run(world.system, following.name, "odd", "", ChangeRequest(world.clock(), Person("ann")))
    with pytest.raises(Impossible, match=f"continued run {run.name} from its checkpoints"):
        reproduce(world.system, version, Person("ann"))


def train_again_named(world: World, name: str) -> Run:
    dropped(world, 0.5)
    return ends(world, train_again(world.system, KEY, "odd").name, 0.9, name=name, about=b'{"note": 1}')


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
