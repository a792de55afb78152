"""Schedules: every firing is decided exactly once, whatever fails, and follows cron's calendar."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from shared.jobs.location import Location
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import NOBODY
from shared.notices import subscribe
from shared.runs.intake.request import RunRequest
from shared.schedules import api, decide, plan
from shared.schedules.model import CatchUp, Outcome, Overlap, Schedule
from shared.schedules.plan import ScheduleSpec
from tests.fakes.world import World, trainers_folder

START = datetime(2026, 1, 1, tzinfo=UTC)
TEN_YEARS = START + timedelta(days=3653)
RUN = RunRequest(template="mnist", data="drops/mnist/a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "mnist/a/1.bin")
    return made


def schedule(
    world: World, overlap: Overlap = Overlap.ALLOW, catch_up: CatchUp = CatchUp.LATEST, cron: str = "0 6 * * *"
) -> Schedule:
    wish = ScheduleSpec(RUN, cron, "Europe/Berlin", catch_up=catch_up, overlap=overlap)
    return plan.add(world.system, world.schedules, wish)


def passes(world: World, days: float, crashes: random.Random | None = None) -> None:
    """Let time pass, with checks when they are due, and the timer every five minutes of a day's first hours."""
    end = world.clock() + timedelta(days=days)
    while True:
        waiting = world.queues.messages.get("checks", [])
        at = min((message.visible_at for message in waiting), default=end)
        if at > end or not waiting:
            break
        world.clock.now = max(at, world.clock())
        words = (crashes.choice(("", "", "", "before", "after")) for _ in range(1000)) if crashes else ()
        if not world.handle("checks", crashes=words):
            break
    world.clock.now = end


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("30 2 * * *", "Europe/Berlin"),
        ("*/20 1-3 * * 6,0", "America/New_York"),
        ("15 * * * 0", "Australia/Lord_Howe"),
        ("0 6 * * 1", "Europe/Berlin"),
        ("0 0 29 2 *", "UTC"),
        ("59 23 31 * *", "America/Sao_Paulo"),
    ],
)
def test_ten_years_of_instants_are_cronsims(cron: str, zone: str) -> None:
    """Checks at odd times over ten years, each continuing from the last decision, find the same times as cronsim."""
    simulated = CronSim(cron, START.astimezone(ZoneInfo(zone)))
    expected = []
    while (at := next(simulated).astimezone(UTC)) <= TEN_YEARS:
        expected.append(at)
    luck, now, found = random.Random(1), START, list[datetime]()
    made = Schedule("s", {}, START, START, cron, zone, catch_up=CatchUp.ALL)
    while now < TEN_YEARS:
        now = min(now + timedelta(hours=luck.choice((1, 7, 30, 100))), TEN_YEARS)
        while ahead := [each.at for each in decide.due(made, now)]:
            found += ahead
            made = Schedule("s", {}, START, ahead[-1], cron, zone, catch_up=CatchUp.ALL)
    assert found == expected


@pytest.mark.parametrize("seed", range(4))
def test_each_instant_starts_one_run_whatever_dies(world: World, seed: int) -> None:
    """Checks die before and after every kind of call, and the timer repeats them: each day has exactly one run."""
    made, luck = schedule(world, catch_up=CatchUp.ALL), random.Random(seed)
    for _ in range(12):
        passes(world, 1, luck)
        world.reconcile(luck.choice(("", "before", "after")) for _ in range(3))
    for _ in range(5):
        world.reconcile()
        passes(world, 0.01)

    berlin = ZoneInfo("Europe/Berlin")
    days = Counter(f.at.astimezone(berlin).isoformat() for f in world.schedules.firings(made.id))
    assert days == {f"2026-01-{day:02d}T06:00:00+01:00": 1 for day in range(1, 13)}
    assert len(world.runs.rows) == len({firing.run for firing in world.schedules.firings(made.id)}) == 12
    assert len(world.queues.messages["checks"]) <= 2, "looks must not breed"


@pytest.mark.parametrize(("rule", "started"), [(CatchUp.SKIP, 0), (CatchUp.LATEST, 1), (CatchUp.ALL, 4)])
def test_what_was_missed_is_caught_up_by_the_rule(world: World, rule: CatchUp, started: int) -> None:
    """After four days without a check, skip starts no missed firing, latest the last, all each; every one is
    recorded."""
    made = schedule(world, catch_up=rule)
    world.clock.advance(4 * 86400)
    world.run_until_idle()
    firings = world.schedules.firings(made.id)
    assert [firing.outcome for firing in firings].count(Outcome.STARTED) == started == len(world.runs.rows)
    assert len(firings) == 4
    assert all("Catch-up is" in firing.why for firing in firings if firing.outcome is Outcome.SKIPPED)


@pytest.mark.parametrize(
    ("rule", "started", "canceled"), [(Overlap.ALLOW, 3, 0), (Overlap.SKIP, 1, 0), (Overlap.REPLACE, 3, 2)]
)
def test_a_run_that_has_not_ended_is_met_by_the_rule(world: World, rule: Overlap, started: int, canceled: int) -> None:
    """While a run lasts for days, allow starts the next beside it, skip waits, and replace cancels it."""
    made = schedule(world, overlap=rule)
    passes(world, 3)
    runs = [row.value for row in world.runs.rows.values()]
    assert (len(runs), sum(run.cancel.asked_at is not None for run in runs)) == (started, canceled)
    assert len(world.schedules.firings(made.id)) == 3


def test_a_request_that_can_not_be_any_more_is_written_down(world: World) -> None:
    """When the data are gone, the firing fails with the reason, and the next firings are still tried."""
    made = schedule(world)
    world.blobs.delete("drops", "mnist/a/1.bin")
    passes(world, 1)
    world.blobs.put("drops", "mnist/a/1.bin")
    passes(world, 1)
    second, first = world.schedules.firings(made.id)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.STARTED)
    assert "nothing at" in first.why


def test_a_pause_is_not_caught_up(world: World) -> None:
    """Firings missed while a schedule is paused are skipped; a resumed schedule continues with the next one."""
    made = schedule(world)
    passes(world, 1)
    plan.pause(world.system, world.schedules, made.id, paused=True)
    passes(world, 3)
    resumed = plan.pause(world.system, world.schedules, made.id, paused=False)
    assert resumed.next_at == datetime(2026, 1, 5, 5, tzinfo=UTC)
    passes(world, 1)
    assert len(world.schedules.firings(made.id)) == 2


def test_a_preview_makes_nothing(world: World) -> None:
    """A dry run returns the next five times, across a daylight saving change, and the job; nothing is stored."""
    world.clock.now = datetime(2026, 3, 27, tzinfo=UTC)
    told = plan.preview(world.system, ScheduleSpec(RUN, "30 2 * * *", "Europe/Berlin"))
    assert [at[5:16] for at in told["next"]] == [
        "03-27T01:30", "03-28T01:30", "03-29T01:00", "03-30T00:30", "03-31T00:30",
    ]  # fmt: skip
    assert told["job"]["command"]
    assert world.schedules.all() == []


@pytest.mark.parametrize(
    ("cron", "zone", "word"),
    [
        ("0 6 * *", "UTC", "five fields"), ("61 * * * *", "UTC", "Bad minute"), ("* * * * * *", "UTC", "five fields"),
        ("0 0 30 2 *", "UTC", "Bad day"), ("0 6 * * 1", "Mars/Olympus", "Europe/Berlin"), ("", "UTC", "when"),
        ("0 6 * * 1", "../etc/passwd", "Europe/Berlin"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused(world: World, cron: str, zone: str, word: str) -> None:
    """An invalid expression, zone or schedule without firings is refused, and the error shows the right form."""
    with pytest.raises(Impossible, match=word):
        plan.add(world.system, world.schedules, ScheduleSpec(RUN, cron, zone))


def test_a_schedule_that_is_gone(world: World) -> None:
    """Removing a schedule ends it; removing or pausing it again says that it does not exist."""
    made = schedule(world)
    plan.remove(world.schedules, made.id)
    passes(world, 2)
    assert len(world.runs.rows) == 0
    with pytest.raises(NotFound, match="schedule list"):
        plan.remove(world.schedules, made.id)
    with pytest.raises(NotFound):
        plan.pause(world.system, world.schedules, made.id, paused=True)


# --- names that are resolved when the schedule fires


def named(world: World, data: str, trainer: str = "mnist", **more: Any) -> Schedule:
    wish = ScheduleSpec(RunRequest(template=trainer, data=data, **more), "0 6 * * *", overlap=Overlap.ALLOW)
    return plan.add(world.system, world.schedules, wish)


def dropped(world: World, name: str, **files: str) -> None:
    """Close a drop of the route `mnist`."""
    for file, text in {"one": name, **files}.items():
        world.upload(f"mnist/{name}/{file}", text.encode())
    world.upload(f"mnist/{name}/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(2):
        world.handle("drop-events")
        world.handle("drop-events")
        while world.handle("drop-events"):
            pass


def outcomes(world: World, made: Schedule) -> list[tuple[Outcome, str]]:
    """Return the outcome of each firing, oldest first, with the drop of its run."""
    firings = reversed(world.schedules.firings(made.id))
    return [(f.outcome, world.runs.get(f.run).value.asked.drop if f.run else "") for f in firings]


def test_latest_means_the_moment_of_the_firing(world: World) -> None:
    """A schedule of mnist@latest trains on the newest run's drop at the time of the firing, not of its creation."""
    dropped(world, "b")
    made = named(world, "mnist/b@latest")
    assert world.schedules.get(made.id).value.request["data"] == "mnist/b@latest"  # type: ignore[union-attr]
    passes(world, 1)
    dropped(world, "c")
    moved = named(world, "digits@latest")
    passes(world, 1)
    assert outcomes(world, made)[0] == (Outcome.STARTED, "mnist/b")
    assert outcomes(world, moved) == [(Outcome.STARTED, "mnist/b")], "the newest run is the schedule's own"


def test_new_is_the_drop_that_closed_since_the_last_run(world: World) -> None:
    """Each firing trains on the newest drop that closed since the last run; without one it is skipped with that
    reason."""
    dropped(world, "old")
    world.clock.advance(60)
    made = named(world, "drops/mnist@new")
    passes(world, 1)
    dropped(world, "b")
    world.clock.advance(60)
    dropped(world, "c")
    passes(world, 2)
    dropped(world, "b", more="x")  # its next generation
    passes(world, 1)
    assert outcomes(world, made) == [
        (Outcome.SKIPPED, ""), (Outcome.STARTED, "mnist/c"), (Outcome.SKIPPED, ""), (Outcome.STARTED, "mnist/b"),
    ]  # fmt: skip
    assert "No drop of route mnist has closed since" in world.schedules.firings(made.id)[-1].why


def test_all_new_are_told_of_in_one_run(world: World) -> None:
    """The data are the route's folder, and the parameter new_drops lists the drops that closed since the last run."""
    job = {
        "command": "python x.py --data ${{inputs.data}} --drops ${{inputs.new_drops}}",
        "environment": "azureml:trainyard@latest",
        "inputs": {"data": {"type": "uri_folder"}, "new_drops": "none"},
        "compute": "azureml:cpu-cluster",
    }
    wish = ScheduleSpec(RunRequest(job=job, data="mnist@all-new"), "0 6 * * *", overlap=Overlap.ALLOW)
    made = plan.add(world.system, world.schedules, wish)
    for names in (("b", "c"), ("d",)):
        for name in names:
            world.clock.advance(60)
            dropped(world, name)
        passes(world, 1)
    runs = [world.runs.get(f.run).value for f in reversed(world.schedules.firings(made.id))]
    assert [run.asked.parameters["new_drops"] for run in runs] == ["b,c", "d"]
    assert {run.asked.request.data["data"].path for run in runs} == {Location("drops", "mnist/")}


@pytest.mark.parametrize("seed", range(4))
def test_a_new_drop_is_trained_once_whatever_dies(world: World, seed: int) -> None:
    """Checks die at any call and are repeated: the firing keeps the drop that its name meant, and the next
    continues from there."""
    made, luck = named(world, "mnist@new"), random.Random(seed)
    for day in range(6):
        if day % 2 == 0:
            world.clock.advance(60)
            dropped(world, f"day-{day}")
        passes(world, 1, luck)
        world.reconcile()
    for _ in range(3):
        world.reconcile()
        passes(world, 0.01)
    trained = [drop for outcome, drop in outcomes(world, made) if outcome is Outcome.STARTED]
    assert trained == ["mnist/day-0", "mnist/day-2", "mnist/day-4"]


def test_a_model_is_chosen_at_the_moment_of_the_firing(world: World) -> None:
    """A schedule whose `--from mnist@best:accuracy` finds no run fails with the reason, and is tried again."""
    made = named(world, "drops/mnist/a", from_run="digits@best:accuracy")
    passes(world, 1)
    assert outcomes(world, made) == [(Outcome.FAILED, "")]
    assert "completed run" in world.schedules.firings(made.id)[0].why


def test_data_that_are_not_there_are_told_of_when_a_schedule_is_made(world: World) -> None:
    """Adding such a schedule, or a dry run, gives a warning; the schedule is kept, since the data may still arrive."""
    for data, words in (
        ("drops/mnist/nothing", "nothing at 'mnist/nothing'"),
        ("mnist@new", "No drop of route mnist has closed"),
        ("mnist@latest", "no run of 'mnist' yet"),
    ):
        request = RunRequest(template="mnist", data=data)
        [reason] = plan.preview(world.system, ScheduleSpec(request, "0 6 * * *"))["reasons"]
        assert (reason["code"], words in reason["message"]) == ("no_data", True)
        body = api.ScheduleRequest(request, "0 6 * * *")
        added = api.add_schedule(world.system, world.schedules, api.DryRunQuery(), body, None, NOBODY, lambda: None)
        assert added.value["reasons"] == [reason]
    with pytest.raises(Impossible, match="write @latest"):
        plan.add(
            world.system, world.schedules, ScheduleSpec(RunRequest(template="mnist", data="mnist@newest"), "0 6 * * *")
        )


def test_a_key_makes_one_schedule(world: World) -> None:
    """A repeat with the same Idempotency-Key returns the first schedule; another request with the key is refused.
    The key is free again once the schedule is removed."""
    wish = ScheduleSpec(RunRequest(template="mnist", data="drops/mnist/a"), "0 6 * * *")
    made = plan.add(world.system, world.schedules, wish, "k")
    world.clock.advance(60)
    assert plan.add(world.system, world.schedules, wish, "k") == made
    for other in (replace(wish, cron="0 7 * * *"), replace(wish, owner="eve"), replace(wish, overlap=Overlap.ALLOW)):
        with pytest.raises(Conflict, match="by another request"):
            plan.add(world.system, world.schedules, other, "k")
    assert [each.id for each in world.schedules.all()] == [made.id]
    plan.remove(world.schedules, made.id)
    assert plan.add(world.system, world.schedules, wish, "k").created_at > made.created_at
    assert plan.add(world.system, world.schedules, wish).id != made.id


def test_two_requests_with_one_key_at_once_make_one_schedule(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that read before the other wrote returns the other's schedule."""
    wish = ScheduleSpec(RunRequest(template="mnist", data="drops/mnist/a"), "0 6 * * *")
    made, get = plan.add(world.system, world.schedules, wish, "k"), world.schedules.get
    misses = [None]  # the first read finds nothing yet
    monkeypatch.setattr(world.schedules, "get", lambda name: misses.pop() if misses else get(name))
    assert plan.add(world.system, world.schedules, wish, "k") == made


def test_a_firing_that_fails_is_told(world: World) -> None:
    """Subscribers learn which schedule could not start its run, and why, once per firing."""
    subscribe.subscribe(world.system, world.post, subscribe.SubscriptionSpec(["schedule"], "https://example.org/x"))
    made = schedule(world)
    world.blobs.delete("drops", "mnist/a/1.bin")
    passes(world, 1, random.Random(3))
    world.reconcile()
    world.run_until_idle()
    [(_, body, _)] = world.sender.posts
    title = json.loads(body)["data"]["title"]
    assert made.id in title
    assert "nothing at 'mnist/a'" in title
