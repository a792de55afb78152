"""Notices: recipients, content, and delivery of each event exactly once despite failures of the endpoint or the
app."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from benchmarks import notices as benchmark
from shared.clusters.facts import ClusterIdles
from shared.clusters.model import Cluster
from shared.events.announce import announce
from shared.events.announce import queue_notice as announce_now
from shared.kernel.errors import Conflict, Impossible, NotFound, Unavailable
from shared.money.facts import BudgetReached, BudgetWarned
from shared.notices import decide, deliver
from shared.notices.messages import DeliverNotice
from shared.notices.model import DeliveryState, Notice, NoticeKind
from shared.notices.ports import Answer
from shared.notices.subscribe import SubscriptionSpec, send_test, subscribe, unsubscribe
from shared.runs.model import RunState
from tests.fakes.parts import changed
from tests.fakes.storage import OtherClock
from tests.fakes.world import World, trainers_folder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOOK = "https://example.com/hook/secret-part"
NOTICE = Notice(
    "RunArchived:mnist-1", NoticeKind.FAILED, "Run mnist-1 failed.", NOW, {"why": "no luck"}, "mnist-1", "mnist"
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def trained(world: World, raw: str = "Completed") -> str:
    """Return a drop's run, ended in this state and archived."""
    for name in ("mnist/a/1.bin", "mnist/a/_SUCCESS"):
        world.upload(name)
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run().name
    world.job_goes(run, raw)
    world.deliver_all()
    world.run_until_idle()
    return run


def deliver_all(world: World, seconds: float = 86400) -> None:
    """Let time pass until no delivery waits for its next attempt."""
    end = world.clock() + timedelta(seconds=seconds)
    while waiting := [m for queue in ("background",) for m in world.queues.messages.get(queue, [])]:
        at = min(message.visible_at for message in waiting)
        if at > end:
            return
        world.clock.now = max(at, world.clock.now)
        world.run_until_idle()


@pytest.mark.parametrize(("raw", "kind"), [("Completed", "completed"), ("Failed", "failed"), ("Canceled", "canceled")])
def test_a_runs_end_is_told_to_those_who_asked(world: World, raw: str, kind: str) -> None:
    """Subscribers to this end of this route's runs are notified once, with the run and its facts; no one else is."""
    for on in ("completed", "failed", "canceled"):
        subscribe(world.system, world.post, SubscriptionSpec([on], f"{HOOK}/{on}", route="mnist"))
    subscribe(world.system, world.post, SubscriptionSpec([kind], f"{HOOK}/other", route="bert"))
    run = trained(world, raw)
    deliver_all(world)

    ((to, body, headers),) = world.sender.posts
    assert to == f"{HOOK}/{kind}"
    event = json.loads(body)
    assert (event["type"], event["data"]["run"], headers["webhook-id"]) == (f"trainyard.{kind}", run, event["id"])
    assert event["data"]["facts"]["cluster"] == "cpu-cluster, 2 nodes"


def test_a_key_makes_one_subscription(world: World) -> None:
    """A repeat with the same Idempotency-Key returns the first subscription with its secret; another request is
    refused."""
    wish = SubscriptionSpec(["failed"], "https://example.org/hook")
    made = subscribe(world.system, world.post, wish, key="k")
    world.clock.advance(60)
    assert subscribe(world.system, world.post, wish, key="k") == made
    with pytest.raises(Conflict, match="by another request"):
        subscribe(world.system, world.post, replace(wish, route="mnist"), key="k")
    assert world.post.notices.all() == [made]


def test_an_event_told_twice_is_one_delivery(world: World) -> None:
    """The same event announced again, even hours later, creates no second delivery to any subscription."""
    subscribe(world.system, world.post, SubscriptionSpec(["completed"], HOOK))
    run = trained(world)
    for _ in range(3):
        world.clock.advance(4000)
        announce(world.system, "RunArchived", run, {"run": run, "state": "completed", "output": "output/x"})
        deliver_all(world)
    assert len(world.sender.posts) == 1


@pytest.mark.parametrize("seed", range(5))
def test_none_is_lost_when_the_endpoint_fails_half_of_the_time(world: World, seed: int) -> None:
    """200 events go to an endpoint that refuses or times out every second time: each event is accepted exactly
    once."""
    luck = random.Random(seed)

    def answers() -> Answer:
        fate = luck.random()
        if fate < 0.25:
            raise Unavailable("no answer")
        return Answer(503 if fate < 0.5 else 200, retry_after=luck.choice((0.0, 30.0)))

    world.sender.answers = answers
    made = subscribe(world.system, world.post, SubscriptionSpec(["completed"], HOOK))
    events = [replace(NOTICE, id=f"e{number}", kind=NoticeKind.COMPLETED) for number in range(200)]
    for notice in events:
        deliver.begin(world.system.queues, world.post, made, notice)
    deliver_all(world)

    accepted = Counter(headers["webhook-id"] for _, _, headers in world.sender.posts)
    assert accepted == Counter({notice.id: 1 for notice in events})
    assert {each.state for each in world.notices.newest(made.id, 1000)} == {DeliveryState.DELIVERED}


def test_the_benchmark_finds_each_event_once() -> None:
    """This holds over HTTP too: an event is sent again, with its id, only when the answer was lost."""
    found = benchmark.measure(60, 3)
    assert (found["accepted"], found["lost"], found["given_up"], found["twice_without_a_lost_answer"]) == (60, 0, 0, 0)
    assert found["requests"] > 90


def test_old_deliveries_are_forgotten_by_the_timer(world: World) -> None:
    """Deliveries older than 90 days are deleted, whatever their state; the subscription and newer deliveries stay."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["completed"], HOOK))
    for number, days in enumerate((91, 89)):
        at = world.clock() - timedelta(days=days)
        deliver.begin(
            world.system.queues, world.post, made, replace(NOTICE, id=f"e{number}", kind=NoticeKind.COMPLETED, at=at)
        )
    assert deliver.prune(world.system.clock, world.post) == 1
    assert [each.notice.id for each in world.notices.newest(made.id)] == ["e1"]
    deliver_all(world)
    assert [headers["webhook-id"] for _, _, headers in world.sender.posts] == ["e1"]


@pytest.mark.parametrize("word", ["before", "after"])
def test_a_crash_anywhere_loses_no_notice(tmp_path: Path, word: str) -> None:
    """Wherever a handler dies between the event and the endpoint, the event arrives, always with the same id."""
    at, died = 0, True
    while died:
        at += 1
        world = World(trainers_folder(tmp_path))
        subscribe(world.system, world.post, SubscriptionSpec(["completed"], HOOK))
        run = trained_but_not_told(world)
        schedule = iter([""] * (at - 1) + [word])
        for _ in range(20):
            if any(world.handle(queue, crashes=schedule) for queue in ("background",)):
                continue
            world.clock.advance(30)
        died = next(schedule, None) is None
        deliver_all(world)
        ids = {headers["webhook-id"] for _, _, headers in world.sender.posts}
        assert ids == {f"RunArchived:{run}"}, f"call {at}"
        (delivery,) = world.notices.newest(next(iter(world.notices.subscriptions)))
        assert delivery.state is DeliveryState.DELIVERED, f"call {at}"
    assert at > 6, "the schedule must reach every call"


def trained_but_not_told(world: World) -> str:
    run = trained(world)
    world.sender.posts.clear()
    world.notices.rows.clear()
    announce(world.system, "RunArchived", run, {"run": run, "state": "completed", "output": "output/x"})
    return run


def test_two_messages_of_one_delivery_do_not_send_twice(world: World) -> None:
    """While one attempt holds a delivery, another message for it waits, and then finds the delivery done."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["failed"], HOOK))
    deliver.begin(world.system.queues, world.post, made, NOTICE)

    def meanwhile() -> Answer:
        world.sender.answers = lambda: Answer(200)
        deliver.deliver(world.system, DeliverNotice(made.id, NOTICE.id))
        return Answer(200)

    world.sender.answers = meanwhile
    deliver_all(world)
    assert len(world.sender.posts) == 1


def test_a_message_that_comes_before_its_time_is_asked_for_again(world: World) -> None:
    """When the handler's clock is behind, the attempt is made once its time has come, and only once."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["failed"], HOOK))
    world.sender.answers = partial(Answer, 503)
    deliver.begin(world.system.queues, world.post, made, NOTICE)
    assert world.handle("background")
    world.sender.answers = partial(Answer, 200)
    world.clock.advance(6)
    assert world.queues.take("background") is not None
    behind = replace(world.system, clock=OtherClock(world.clock, -4))
    deliver.deliver(behind, DeliverNotice(made.id, NOTICE.id))
    deliver_all(world)
    stored = world.notices.delivery(made.id, NOTICE.id)
    assert stored is not None
    assert (stored.value.state, stored.value.tries, len(world.sender.posts)) == (DeliveryState.DELIVERED, 2, 1)


def test_an_archive_that_was_given_up_is_told_as_a_failure(world: World) -> None:
    """Subscribers to failures are notified of an abandoned archive, with the reason; an unknown run causes no
    notice."""
    subscribe(world.system, world.post, SubscriptionSpec(["failed"], HOOK))
    run = trained(world)
    world.runs.update(old := world.runs.get(run), changed(old.value, archive_error="The copy differs."))
    for name in (run, "mnist-unknown"):
        announce_now(world.system, "RunGivenUp", name, {"run": name})
    deliver_all(world)
    [(_, body, _)] = world.sender.posts
    assert b"The copy differs." in body
    assert b"could not archive" in body


def test_trying_has_an_end(world: World) -> None:
    """An endpoint that never accepts is abandoned after all attempts, on 410 at once; the record says why."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["failed"], HOOK))
    for status, tries in ((500, decide.TRIES), (410, 1)):
        world.sender.answers = partial(Answer, status)
        notice = replace(NOTICE, id=f"e{status}", at=NOW + timedelta(seconds=status))
        deliver.begin(world.system.queues, world.post, made, notice)
        deliver_all(world, 3 * 86400)
        stored = world.notices.delivery(made.id, notice.id)
        assert stored is not None
        assert (stored.value.state, stored.value.tries) == (DeliveryState.GAVE_UP, tries)
        assert str(status) in stored.value.error
        assert "secret-part" not in stored.value.error


def test_a_removed_subscription_is_told_nothing_more(world: World) -> None:
    """Pending deliveries of a removed subscription are abandoned; a second removal says that the subscription is
    gone."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["failed"], HOOK))
    deliver.begin(world.system.queues, world.post, made, NOTICE)
    unsubscribe(world.post, made.id)
    deliver_all(world)
    assert world.sender.posts == []
    for call in (lambda: unsubscribe(world.post, made.id), lambda: send_test(world.system, world.post, made.id)):
        with pytest.raises(NotFound, match="notify list"):
            call()


def test_a_test_goes_to_one_subscription_whatever_its_kinds(world: World) -> None:
    """This includes mail: subject, text and an id that stays the same."""
    made = subscribe(world.system, world.post, SubscriptionSpec(["poison"], "ada@example.org"))
    subscribe(world.system, world.post, SubscriptionSpec(["poison"], HOOK))
    event = send_test(world.system, world.post, made.id)
    deliver_all(world)
    ((to, subject, text, known),) = world.sender.mails
    assert (to, known, world.sender.posts) == ("ada@example.org", event, [])
    assert "test" in subject
    assert event in text


def test_mail_without_a_server_is_given_up_with_the_setting(world: World) -> None:
    """Without a mail server there is no further attempt: the delivery names the missing setting."""
    world.sender.has_mail = False
    made = subscribe(world.system, world.post, SubscriptionSpec(["failed"], "ada@example.org"))
    deliver.begin(world.system.queues, world.post, made, NOTICE)
    deliver_all(world)
    (delivery,) = world.notices.newest(made.id)
    assert delivery.state is DeliveryState.GAVE_UP
    assert "TRAINYARD_SMTP_URL" in delivery.error


def test_poison_is_told_once(world: World) -> None:
    """Every message in a poison queue is announced once, however often the timer finds it."""
    subscribe(world.system, world.post, SubscriptionSpec(["poison"], HOOK))
    for text in ("a", "b"):
        world.queues.put("background-poison", json.dumps({"run": text}))
    for _ in range(3):
        world.reconcile()
        deliver_all(world, 600)
    assert len(world.sender.posts) == 2
    assert "background" in json.loads(world.sender.posts[0][1])["data"]["title"]


def test_evictions_are_told_at_the_third(world: World) -> None:
    """A run that loses its nodes for the third time is announced, once."""
    subscribe(world.system, world.post, SubscriptionSpec(["evicted"], HOOK))
    for name in ("mnist/a/1.bin", "mnist/a/_SUCCESS"):
        world.upload(name)
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run().name
    for lost in range(1, 6):
        for raw in ("Running", "Queued"):
            world.job_goes(run, raw)
            world.deliver_all()
            world.run_until_idle()
        assert len(world.sender.posts) == (lost >= 3)
    assert "3 times" in json.loads(world.sender.posts[0][1])["data"]["title"]
    assert world.only_run().progress.state is RunState.QUEUED


def test_waits_grow_and_have_an_end() -> None:
    """The pauses double up to an hour, and an endpoint that asks for more time gets it."""
    assert [decide.pause(tries) for tries in (1, 2, 3, 11, 24)] == [5, 10, 20, 3600, 3600]
    assert (decide.pause(1, retry_after=90), decide.pause(1, retry_after=1e9)) == (90, 3600)


def test_unknown_kinds_are_named() -> None:
    """An unknown kind is refused with the choices; no one can subscribe to the kind test."""
    with pytest.raises(Impossible, match="completed, failed"):
        decide.read_kinds(["failed", "finished"])
    with pytest.raises(Impossible):
        decide.read_kinds(["test"])
    assert decide.read_kinds(["idle", "failed", "idle"]) == (NoticeKind.FAILED, NoticeKind.IDLE)


def test_a_budgets_warning_is_told(world: World) -> None:
    """The ledger's announcement about a project's budget reaches subscribers in the ledger's words."""
    subscribe(world.system, world.post, SubscriptionSpec(["budget"], HOOK))
    for fact in (BudgetWarned, BudgetReached):
        world.system.happened(fact("research", "research/2026-01", f"{fact.__name__}: spent $80 of $100."))
    deliver_all(world)
    assert [json.loads(body)["data"]["title"] for _, body, _ in world.sender.posts] == [
        "BudgetWarned: spent $80 of $100.",
        "BudgetReached: spent $80 of $100.",
    ]


def test_an_idle_cluster_is_told_of_once(world: World) -> None:
    """A cluster whose nodes were idle for an hour is announced once, however many sweeps see it."""
    subscribe(world.system, world.post, SubscriptionSpec(["idle"], HOOK))
    cluster = Cluster("gpu", 0, 4, 120, nodes=2)
    since = world.clock()
    for _ in range(20):
        world.system.happened(ClusterIdles(cluster, since, world.clock()))
        world.clock.advance(300)
        deliver_all(world, 60)
    assert len(world.sender.posts) == 1
    assert "2 nodes" in json.loads(world.sender.posts[0][1])["data"]["title"]
