"""The contract of shared.kernel.storage.Queues, tested on the fake and on Azure Queue Storage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.queues import StorageQueues
from shared.kernel.errors import BadInput
from shared.kernel.message import Message
from shared.kernel.storage import Queues
from shared.messages import poison
from tests.fakes.ports import Clock, FakeQueues


@pytest.fixture(params=["fake", "clients", "own_clients", "token_clients"])
def queues(request: pytest.FixtureRequest) -> Queues:
    if request.param == "fake":
        return FakeQueues()
    clients: StorageClients = request.getfixturevalue(request.param)
    return StorageQueues(clients.queue)


def note(queue: str, i: object) -> Message:
    """A message of the queue that holds `i`."""

    @dataclass(frozen=True)
    class Note(Message, queue=queue, handler=""):
        i: object

    return Note(i)


def test_a_message_is_json_text(queues: Queues, unique: Callable[[], str]) -> None:
    """A sent message is read back as JSON, not base64, whatever characters it holds; sending creates the queue."""
    name, content = unique(), "übung/<a&b> 数据 🚂\n\x01"
    queues.send(note(name, content))
    assert [json.loads(text) for text in queues.peek(name)] == [{"message": "Note", "i": content}]


def test_a_text_is_put_as_it_is(queues: Queues, unique: Callable[[], str]) -> None:
    """A text from another service or from a poison queue is not changed."""
    name = unique()
    queues.put(name, "bm8gSlNPTg==")
    assert queues.peek(name) == ["bm8gSlNPTg=="]


def test_peek_leaves_the_messages(queues: Queues, unique: Callable[[], str]) -> None:
    """Peeking returns at most `limit` messages (at most 32) and removes none."""
    name = unique()
    for i in range(40):
        queues.send(note(name, i))
    assert len(queues.peek(name, 3)) == 3
    assert len(queues.peek(name, 100)) == 32
    assert queues.counts([name]) == {name: 40}


def test_a_delayed_message_is_counted_and_not_yet_seen(queues: Queues, unique: Callable[[], str]) -> None:
    """A delayed message exists but is invisible. A delay above 7 days is cut, and a negative delay means none."""
    name = unique()
    queues.send(note(name, 0), delay=3600.5)
    queues.send(note(name, 1), delay=1e9)
    assert queues.peek(name) == []
    queues.send(note(name, 2), delay=-5)
    assert [json.loads(text)["i"] for text in queues.peek(name)] == [2]
    assert queues.counts([name]) == {name: 3}


def test_the_first_message_has_an_age(queues: Queues, unique: Callable[[], str]) -> None:
    """The age is in seconds; a queue without visible messages, or a missing queue, has no age."""
    waiting, later, nowhere = unique(), unique(), unique()
    queues.send(note(waiting, 0))
    queues.send(note(later, 0), delay=3600)
    ages = queues.ages([waiting, later, nowhere])
    assert ages == {waiting: ages[waiting], later: 0, nowhere: 0}
    assert 0 <= ages[waiting] < 60


def test_messages_are_given_back_as_they_are(queues: Queues, unique: Callable[[], str]) -> None:
    """`give_back` moves up to `limit` of the given texts to the other queue, unchanged; the rest stay."""
    source, target = unique(), unique()
    queues.send(note(target, "before"))
    for i in range(40):
        queues.send(note(source, [i, "数\n"]))
    assert queues.give_back(source, target, 35) == 35
    assert queues.counts([source, target]) == {source: 5, target: 36}
    assert [0, "数\n"] in [json.loads(text)["i"] for text in queues.peek(target)]
    assert queues.give_back(source, target, 100) == 5
    assert queues.give_back(source, target, 100) == 0
    assert queues.give_back(unique(), target, 100) == 0


def test_what_is_done_is_cleared_and_the_rest_stays(queues: Queues, unique: Callable[[], str]) -> None:
    """Of up to `limit` messages, those whose text is done are deleted; the others are visible at once, unchanged."""
    name = unique()
    for i in range(40):
        queues.send(note(name, i))
    assert queues.clear(name, lambda text: json.loads(text)["i"] % 2 == 0, 100) == 20
    assert queues.clear(name, lambda text: json.loads(text)["i"] % 2 == 0, 100) == 0
    assert queues.counts([name]) == {name: 20}
    assert all(json.loads(text)["i"] % 2 for text in queues.peek(name))
    assert queues.clear(unique(), lambda _: True, 100) == 0


def test_a_queue_that_is_not_there_is_empty(queues: Queues, unique: Callable[[], str]) -> None:
    """Counting or peeking at an unknown queue returns nothing, and does not disturb the existing queues of the same
    call."""
    name, missing = unique(), unique()
    queues.put(name, "{}")
    assert queues.counts([name, missing]) == {name: 1, missing: 0}
    assert queues.peek(missing) == []


def test_a_message_that_is_too_long_is_refused(clients: StorageClients, unique: Callable[[], str]) -> None:
    """A message beyond the service's 64 KiB raises BadInput with the queue's name."""
    name = unique()
    with pytest.raises(BadInput, match=name):
        StorageQueues(clients.queue).put(name, "x" * 70_000)


def test_a_message_never_expires(clients: StorageClients, unique: Callable[[], str]) -> None:
    """The service's default of 7 days would lose messages that could not be handled in a week."""
    name = unique()
    StorageQueues(clients.queue).put(name, "{}")
    (message,) = clients.queue.get_queue_client(name).peek_messages()
    assert message.expires_on is not None
    assert message.expires_on.year > 2100


def test_the_fakes_host_takes_only_what_is_visible() -> None:
    """`take` removes one visible message; a delayed message becomes visible as the clock advances."""
    clock = Clock()
    queues = FakeQueues(clock)
    queues.send(note("q", 0), delay=10)
    assert queues.take("q") is None
    clock.advance(10)
    taken = queues.take("q")
    assert taken is not None
    assert taken.body["i"] == 0
    assert queues.take("q") is None


def test_a_message_can_be_taken_back(queues: Queues, unique: Callable[[], str]) -> None:
    """A withdrawn message is gone, hidden or not, and the others stay; withdrawing twice is fine."""
    name = unique()
    hidden, seen = queues.send(note(name, 0), delay=60), queues.send(note(name, 1))
    queues.send(note(name, 2))
    for sent in (hidden, seen, seen):
        queues.withdraw(name, sent)
    assert [json.loads(text)["i"] for text in queues.peek(name)] == [2]
    assert queues.counts([name]) == {name: 1}


def test_messages_can_be_given_back_to_their_own_queue(queues: Queues, unique: Callable[[], str]) -> None:
    """Messages moved to their own queue start again: each is still there, once."""
    name = unique()
    for i in range(3):
        queues.send(note(name, i))
    assert queues.give_back(name, name, 10) == 3
    assert sorted(json.loads(text)["i"] for text in queues.peek(name)) == [0, 1, 2]


def test_poison_that_the_host_put_there_stays(clients: StorageClients, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daily timer puts each message back unchanged, because messages that Azure's host puts expire after a
    week. On two consecutive days no message is lost or doubled, and a missing queue is not created."""
    monkeypatch.setattr(poison, "QUEUES", ("kept", "none"))
    queue = clients.queue.create_queue("kept-poison")
    texts = [f"not JSON {number}" for number in range(40)]
    for text in texts:
        queue.send_message(text, time_to_live=7 * 86_400)
    ports: Any = SimpleNamespace(queues=StorageQueues(clients.queue))
    for _ in range(2):
        poison.keep_poison(ports.queues)
    messages = list(queue.receive_messages(messages_per_page=32, max_messages=100))
    assert sorted(message.content for message in messages) == sorted(texts)
    assert {message.expires_on.year for message in messages if message.expires_on} == {9999}
    assert [found.name for found in clients.queue.list_queues(name_starts_with="none")] == []
    queue.delete_queue()
