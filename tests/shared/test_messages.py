"""Each message is declared once, and stays compatible with older versions."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from functions import queues
from shared.drops.messages import FileUploaded
from shared.events.messages import Announce
from shared.kernel.errors import BadMessage
from shared.kernel.message import Message, encode, function, is_event
from shared.kernel.ports import StoragePorts
from shared.messages.declared import EVENT_QUEUES, QUEUES, by_queue, decode
from shared.messages.old_queues import MOVED, ROUNDS_FOR_ALL
from tests.fakes.world import World, trainers_folder

KINDS = [kind for kinds in by_queue().values() for kind in kinds]
AT = "2026-01-02T03:04:05.000006+00:00"
# Each message as the version of 27 November 2026 wrote it, with the name of its kind and its queue.
BEFORE: dict[str, tuple[str, dict[str, Any]]] = {
    "CheckDrop": ("drop-checks", {"route": "r", "name": "n", "token": "t", "last": False}),
    "SubmitRun": ("submissions", {"run": "r"}),
    "CheckSweep": ("run-looks", {"sweep": "s", "number": 3}),
    "CheckData": ("run-looks", {"data_of": "r"}),
    "CheckPace": ("run-looks", {"paced": "r", "token": ""}),
    "CheckHour": ("run-looks", {"hour": "20260101T00"}),
    "ArchiveRun": ("archives", {"run": "r"}),
    "CheckCluster": ("cluster-looks", {"cluster": "c"}),
    "Announce": ("announcements", {"kind": "DropSealed", "subject": "s", "at": AT, "data": {"drop": "r/n"}}),
    "Notify": ("notices", {"kind": "RunEvicted", "subject": "s", "at": AT, "data": {}, "after": "n-1"}),
    "DeliverNotice": ("deliveries", {"subscription": "n-1", "notice": "e"}),
    "CheckSchedule": ("schedule-looks", {"schedule": "s", "meant": ""}),
    "CarryOutRemoval": ("removals", {"what": "run", "name": "r", "asked_at": AT}),
    "Challenge": ("promotions", {"run": "r"}),
}


def test_the_queues_are_those_of_the_messages() -> None:
    """The queues that the triggers know before any message's module is imported are those that the messages
    declare."""
    assert set(QUEUES) == set(by_queue())
    assert set(EVENT_QUEUES) == {queue for queue, kinds in by_queue().items() if any(map(is_event, kinds))}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_functions_of_a_message_take_it(kind: type[Message]) -> None:
    """Handler, `done` and `news_since` exist, and their second parameter has the type of the message."""
    assert is_dataclass(kind)
    for name in filter(None, (kind.handler, kind.done, kind.news_since)):
        found = function(name)
        parameter = list(inspect.signature(found).parameters)[1]
        taken = get_type_hints(found)[parameter]
        assert kind in (taken, *getattr(taken, "__args__", ())), name


def test_every_kind_that_we_send_has_its_older_form_here() -> None:
    """A newer kind of message needs no line, since no older version wrote it. A removed kind leaves a line too
    many."""
    assert BEFORE.keys() <= {kind.__name__ for kind in KINDS if not is_event(kind)}


@pytest.mark.parametrize("name", BEFORE)
def test_two_versions_read_each_other(name: str) -> None:
    """The previous version's messages are parsed as their kind, and new messages have the keys that the previous
    version reads."""
    queue, content = MOVED.get(BEFORE[name][0], BEFORE[name][0]), BEFORE[name][1]
    message = decode(queue, json.dumps({"message": name, **content}).encode())
    assert type(message).__name__ == name
    assert isinstance(message, Message)
    assert json.loads(encode(message)).items() >= content.items()
    assert decode(queue, encode(message).encode()) == message


def test_a_kind_is_told_by_its_name_alone() -> None:
    """The name on the wire decides, not the keys; the name of another version is refused."""
    both = {"message": "CheckHour", "hour": "20260101T00", "sweep": "s"}
    assert type(decode("checks", json.dumps(both).encode())).__name__ == "CheckHour"
    for body in ({"message": "CheckMoon", "hour": "20260101T00"}, {"what": "is this"}):
        with pytest.raises(BadMessage, match="Unknown kind of message"):
            decode("checks", json.dumps(body).encode())


@pytest.mark.parametrize(
    ("queue", "content"),
    [
        ("submissions", {"run": 3}),
        ("background", {"message": "Announce", "kind": "k", "subject": "s", "at": "2026-01-02T03:04:05", "data": {}}),
        ("background", {"message": "CarryOutRemoval", "what": "moon", "name": "r", "asked_at": AT}),
    ],
)
def test_what_does_not_fit_is_refused(queue: str, content: dict[str, Any]) -> None:
    """A value of another type, a time without a zone, or an unknown choice raises BadMessage."""
    with pytest.raises(BadMessage):
        decode(queue, json.dumps(content).encode())


def test_an_event_of_something_else_is_no_message() -> None:
    """Event Grid reports every blob of the account; only files in the drops container are relevant."""
    event = {
        "eventType": "Microsoft.Storage.BlobCreated",
        "subject": "/blobServices/default/containers/drops/blobs/mnist/a/1.bin",
        "eventTime": AT,
        "data": {"api": "PutBlob"},
    }
    found = decode("drop-events", json.dumps(event).encode())
    assert isinstance(found, FileUploaded)
    assert (found.name, found.form) == ("mnist/a/1.bin", "Event Grid's schema, plain text")
    elsewhere = event | {"subject": "/blobServices/default/containers/output/blobs/x"}
    assert decode("drop-events", json.dumps(elsewhere).encode()) is None


def test_names_are_unique_in_their_queue() -> None:
    """The wire has the class's name, so a queue has each name once, and at most one kind of event."""
    for queue in QUEUES:
        names = [kind.__name__ for kind in by_queue()[queue]]
        assert len(names) == len(set(names))
        assert sum(map(is_event, by_queue()[queue])) <= 1
        assert not any("message" in get_type_hints(kind) for kind in by_queue()[queue])


@dataclass(frozen=True)
class Ping(Message, queue="checks", handler="tests.shared.test_messages:note_ping"):
    """A message kind that only this module knows."""

    name: str


def note_ping(ports: StoragePorts, message: Ping) -> None:
    ports.blobs.write("output", f"pings/{message.name}", b"", "text/plain")


def test_a_new_kind_is_known_by_its_declaration_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake world and the app's trigger handle it, and its poison messages are removed, although none names the
    kind."""
    world = World(trainers_folder(tmp_path))
    monkeypatch.setitem(by_queue(), Ping.queue, [*by_queue()[Ping.queue], Ping])
    monkeypatch.setattr(queues, "the_system", lambda: world.system)
    world.queues.send(Ping("by-the-world"))
    assert world.handle(Ping.queue)
    queues.receive(Ping.queue, encode(Ping("by-the-trigger")).encode())
    assert {*world.blobs.containers["output"]} == {"pings/by-the-world", "pings/by-the-trigger"}
    world.queues.put(f"{Ping.queue}-poison", encode(Ping("poisoned")))
    world.reconcile()
    assert world.queues.counts([f"{Ping.queue}-poison"]) == {f"{Ping.queue}-poison": 0}


def test_messages_left_in_old_queues_are_handled(tmp_path: Path) -> None:
    """The first reconcile moves the messages of the previous version; hidden messages follow, old poison messages
    are retried."""
    world = World(trainers_folder(tmp_path))
    times = [world.clock() + timedelta(seconds=second) for second in range(3)]
    left = [Announce("RunLost", "r", at, {"run": "r"}) for at in times]
    for queue, message in zip(("announcements", "announcements-poison"), left, strict=False):
        world.queues.put(queue, encode(message))
    world.reconcile()
    world.queues.put("announcements", encode(left[2]))  # a message that was hidden
    for _ in range(ROUNDS_FOR_ALL):
        world.reconcile()
    world.run_until_idle()
    assert len(world.events.published) == len(left)
    assert not any(world.queues.counts(name for old in MOVED for name in (old, f"{old}-poison")).values())
    assert set(MOVED.values()) <= set(QUEUES)
    assert not set(MOVED) & set(QUEUES)
