"""Messages that were set aside: those whose subject is settled clear themselves, the others stay and are counted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from shared.api import status
from shared.kernel import places
from shared.kernel.storage import Sent
from tests.fakes.storage import Message
from tests.fakes.world import World, trainers_folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def aside(world: World) -> dict[str, list[Any]]:
    """What is left in the poison queues."""
    left = {queue: [message.body for message in world.queues.visible(f"{queue}-poison")] for queue in places.QUEUES}
    return {queue: its for queue, its in left.items() if its}


def put_aside(world: World, queue: str, body: dict[str, Any]) -> None:
    """As the host does after five tries. The world wraps Event Grid's own messages."""
    text = base64.b64decode(body["event"]).decode() if "event" in body else json.dumps(body)
    world.queues.messages.setdefault(f"{queue}-poison", []).append(Message(text, world.clock()))


def counted(world: World) -> int:
    return sum(queue["poison"] for queue in status.status(world.system)["queues"].values())


def test_a_settled_message_clears_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of copies of all messages of a drop's way, which are set aside, some matter while its run goes on; then none."""
    copies: list[tuple[str, dict[str, Any]]] = []
    send = world.queues.send

    def copying(queue: str, message: dict[str, Any], delay: float = 0.0) -> Sent:
        copies.append((queue, message))
        return send(queue, message, delay)

    monkeypatch.setattr(world.queues, "send", copying)
    world.complete("1.bin")
    run = world.only_run().name
    world.job_goes(run, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert {"drop-events", "drop-checks", "submissions", "job-events"} <= {queue for queue, _ in copies}
    for queue, body in list(copies):
        put_aside(world, queue, body)
    assert counted(world) > 0
    world.reconcile()
    assert set(aside(world)) <= {"job-events", "run-looks", "announcements", "notices"}, "the run goes on"
    world.settle()
    world.reconcile()
    assert set(aside(world)) <= {"announcements", "notices"}
    assert counted(world) == len([body for its in aside(world).values() for body in its])


def test_what_matters_stays_and_is_counted(world: World) -> None:
    """A message that can't be read, of a run whose archive is missing, or of an upload that nobody saw."""
    world.complete("1.bin")
    event = world.upload("mnist/new/1.bin")
    world.in_flight.clear()
    put_aside(world, "archives", {"run": world.only_run().name})
    put_aside(world, "drop-events", {"event": base64.b64encode(json.dumps(event).encode()).decode()})
    put_aside(world, "drop-checks", {"what": "is this"})
    assert counted(world) == 3
    for _ in range(2):
        world.reconcile()  # and finds the drop of the upload
    assert set(aside(world)) == {"archives", "drop-checks"}
    assert counted(world) == 2
