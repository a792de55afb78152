"""Poison messages and dead letters return to their queue at least once, and none is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.kernel.errors import NotFound
from shared.messages import replay
from shared.messages.replay import ReplayedMessages, give_back
from tests.fakes.crashing import Crash
from tests.fakes.world import World, trainers_folder

EVENT = {"id": "1", "eventType": "Microsoft.Storage.BlobCreated", "subject": "/s", "data": {"api": "PutBlob"}}
OBITUARY = {"deadLetterReason": "MaxDeliveryAttemptsExceeded", "deliveryAttempts": 30, "publishTime": "2026-01-01"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def dead(world: World, name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    world.blobs.put("deadletter", name, text.encode())


def waiting(world: World, queue: str) -> list[Any]:
    return [json.loads(message.text) for message in world.queues.messages.get(queue, [])]


def letters(world: World) -> list[str]:
    return list(world.blobs.containers.get("deadletter", {}))


def test_a_queue_gets_back_what_is_its_own(world: World) -> None:
    """A queue gets its poison messages unchanged, and its dead letters; those of other queues stay and are not
    reported."""
    world.queues.put("drop-events-poison", '{"mine": 1}')
    world.queues.put("job-events-poison", '{"other": 1}')
    dead(world, "DROP-EVENTS/2026/1/1/1/x.json", [EVENT])
    dead(world, "JOB-EVENTS/2026/1/1/1/x.json", [EVENT])
    assert give_back(world.system.blobs, world.system.queues, "drop-events") == ReplayedMessages(
        "drop-events", 1, 1, ()
    )
    assert sorted(waiting(world, "drop-events"), key=str) == sorted([{"mine": 1}, EVENT], key=str)
    assert (waiting(world, "job-events"), letters(world)) == ([], ["JOB-EVENTS/2026/1/1/1/x.json"])
    with pytest.raises(NotFound, match="Queues: drop-events, "):
        give_back(world.system.blobs, world.system.queues, "drop-event")


@pytest.mark.parametrize("below", ["DROP-EVENTS/2026/1/1/1", "a-topic/DROP-EVENTS/2026/1/1/1"])
@pytest.mark.parametrize("lower", [False, True])
def test_dead_letters_become_the_events_that_they_were(world: World, below: str, lower: bool) -> None:
    """Each event of a dead letter, in either schema, returns without Event Grid's additions; the letter's file is
    deleted."""
    added = {key.lower() if lower else key: value for key, value in OBITUARY.items()}
    dead(world, f"{below}/x.json", [EVENT | added, EVENT | added | {"id": "2"}])
    assert give_back(world.system.blobs, world.system.queues, "drop-events").dead_letters == 2
    assert waiting(world, "drop-events") == [EVENT, EVENT | {"id": "2"}]
    assert letters(world) == []


def test_a_dry_run_moves_nothing(world: World) -> None:
    """A dry run counts all messages of both kinds, and moves none."""
    world.queues.put("drop-events-poison", '{"mine": 1}')
    dead(world, "topic/DROP-EVENTS/2026/1/1/1/x.json", EVENT)
    assert give_back(world.system.blobs, world.system.queues, "drop-events", dry_run=True) == ReplayedMessages(
        "drop-events", 1, 1, ()
    )
    assert (waiting(world, "drop-events"), len(letters(world))) == ([], 1)


def test_what_belongs_nowhere_stays_and_is_named(world: World) -> None:
    """A dead letter of another subscription, and one that is not JSON, stay and are reported."""
    dead(world, "SOMEBODY-ELSES/2026/1/1/1/x.json", "[]")
    dead(world, "DROP-EVENTS/2026/1/1/1/y.json", "no json")
    dead(world, "DROP-EVENTS/2026/1/1/1/z.json", "[1]")
    left = give_back(world.system.blobs, world.system.queues, "drop-events").left
    assert sorted(left) == sorted(letters(world))
    assert len(left) == 3


def test_one_call_gives_back_so_many_files_and_an_interruption_loses_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files beyond the limit wait for the next call; a crash between an event and the deletion of its file repeats
    that file."""
    monkeypatch.setattr(replay, "MOST", 2)
    for number in range(3):
        dead(world, f"DROP-EVENTS/{number}.json", EVENT | {"id": str(number)})

    def dies(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as dying:
        dying.setattr(world.blobs, "remove", dies)
        with pytest.raises(Crash):
            give_back(world.system.blobs, world.system.queues, "drop-events")
    assert [give_back(world.system.blobs, world.system.queues, "drop-events").dead_letters for _ in range(3)] == [
        2,
        1,
        0,
    ]
    assert [event["id"] for event in waiting(world, "drop-events")] == ["0", "0", "1", "2"]
