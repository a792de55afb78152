"""Poison messages: a message whose subject is settled is removed; other messages stay and are counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.api import status
from shared.jobs.route_model import RouteModel
from shared.kernel.memory import Memory
from shared.kernel.storage import Sent
from shared.messages.declared import QUEUES
from shared.notices.model import Channel, Delivery, DeliveryState, Notice, NoticeKind, Subscription
from tests.fakes.world import ROUTE, World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def aside(world: World) -> dict[str, list[Any]]:
    """Return the messages left in the poison queues."""
    left = {queue: [message.text for message in world.queues.visible(f"{queue}-poison")] for queue in QUEUES}
    return {queue: its for queue, its in left.items() if its}


def put_aside(world: World, queue: str, body: dict[str, Any]) -> None:
    """Move a message to its poison queue, as the host does after five tries."""
    world.queues.put(f"{queue}-poison", json.dumps(body))


def counted(world: World) -> int:
    """Return how many poison messages the status shows after it has read the queues again."""
    world.clock.advance(status.SECONDS_SHOWN.total_seconds())
    return sum(queue["poison"] for queue in status.get_status(world.system)["queues"].values())


def test_a_settled_message_clears_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poison copies of all messages of a drop's way: some count while its run is live; afterwards all are removed."""
    copies: list[tuple[str, str]] = []
    put = world.queues._put

    def copying(queue: str, text: str, delay: float = 0.0) -> Sent:
        copies.append((queue, text))
        return put(queue, text, delay)

    monkeypatch.setattr(world.queues, "_put", copying)
    world.complete("1.bin")
    run = world.only_run().name
    world.job_goes(run, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert {"drop-events", "submissions", "job-events", "checks"} <= {queue for queue, _ in copies}
    for queue, text in list(copies):
        world.queues.put(f"{queue}-poison", text)
    assert counted(world) > 0
    world.reconcile()
    assert set(aside(world)) <= {"job-events", "checks"}, "the run goes on"
    world.settle()
    world.reconcile()
    assert aside(world) == {}
    assert counted(world) == 0


def test_a_time_without_a_zone_holds_up_no_other_message(world: World) -> None:
    """A message whose time can't be compared stays and is counted; the settled messages beside it are removed."""
    put_aside(
        world,
        "background",
        {"message": "Announce", "kind": "RunSubmitted", "subject": "r", "at": "2026-01-01T00:00:00", "data": {}},
    )
    put_aside(world, "checks", {"cluster": "cpu-cluster"})
    world.reconcile()
    assert {queue: len(its) for queue, its in aside(world).items()} == {"background": 1}
    assert counted(world) == 1


def test_what_matters_stays_and_is_counted(world: World) -> None:
    """These stay: a message that can't be parsed, of a run whose archive is missing, or of an upload that was not
    handled."""
    world.complete("1.bin")
    event = world.upload("mnist/new/1.bin")
    world.in_flight.clear()
    put_aside(world, "background", {"run": world.only_run().name})
    put_aside(world, "drop-events", event)
    put_aside(world, "checks", {"what": "is this"})
    assert counted(world) == 3
    for _ in range(2):
        world.reconcile()  # the timer finds the drop of the upload
    assert set(aside(world)) == {"background", "checks"}
    assert counted(world) == 2


def test_what_nobody_else_sends_again_is_tried_for_a_day(world: World) -> None:
    """An announcement, a notice, a delivery and a challenge return to their queues for a day; each ends where it
    was already done. Afterwards the messages are removed, except a delivery or a challenge that is still to be
    made."""
    world.complete("1.bin")
    run = world.only_run().name
    world.job_goes(run, "Completed")
    world.blobs.remove("azureml-blobstore", [f"trainyard/{run}/models/model.pt"])
    world.blobs.put("azureml-blobstore", f"trainyard/{run}/models/model.safetensors", b"w")
    world.settle()
    rule = RouteModel("digits", "test_accuracy")
    routes = {"mnist": replace(ROUTE, model=rule)}
    world.system = replace(world.system, audience=world.notices, routes=routes, memory=Memory())  # other settings
    notice = Notice("e", NoticeKind.FAILED, "It failed", world.clock(), {}, "", "mnist")
    world.notices.add(
        Subscription("n", (NoticeKind.FAILED,), Channel.WEBHOOK, "https://x.example", world.clock(), "ada")
    )
    event = {"kind": "RunLost", "subject": run, "at": world.clock().isoformat(), "data": {"run": run}}
    world.notices.insert(Delivery("n", notice))
    messages: list[tuple[str, dict[str, Any]]] = [
        ("background", {"message": "Announce", **event}),
        ("background", {"message": "Notify", **event}),
        ("background", {"message": "DeliverNotice", "subscription": "n", "notice": "e"}),
        ("background", {"what": "run", "name": run, "asked_at": world.clock().isoformat()}),
        ("checks", {"message": "Challenge", "run": run}),
    ]
    for queue, message in messages:
        put_aside(world, queue, message)
    assert counted(world) == 4, "the daily timer asks for removals again"
    world.reconcile()
    assert aside(world) == {}
    world.run_until_idle()
    assert [event.kind for event in world.events.published].count("RunLost") == 1
    assert world.notices.rows["n", "e"].value.state is DeliveryState.DELIVERED
    assert world.system.named.needing_run(run) == ["digits/1"]
    for queue, message in messages:
        put_aside(world, queue, message)
    world.clock.advance(25 * 3600)
    assert counted(world) == 0
    world.reconcile()
    assert aside(world) == {}
    world.notices.insert(Delivery("n", replace(notice, id="late")))
    put_aside(world, "background", {"subscription": "n", "notice": "late"})
    world.clock.advance(25 * 3600)
    world.reconcile()
    assert (set(aside(world)), counted(world)) == ({"background"}, 1), "it was tried for a day, and somebody must look"
