"""The queue protocol as Microsoft's package speaks it, against Azurite and against ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueClient, QueueServiceClient, TextBase64DecodePolicy, TextBase64EncodePolicy

from emulators.process import wait_for

WEEK = 7 * 24 * 3600


@pytest.fixture
def queue(queues: QueueServiceClient, unique: Callable[[], str]) -> Iterator[QueueClient]:
    client = queues.create_queue(unique())
    yield client
    client.delete_queue()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """The status and code with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    code = caught.value.error_code  # type: ignore[attr-defined]
    return caught.value.status_code, str(getattr(code, "value", code))


def test_a_queue_is_made_once(queues: QueueServiceClient, unique: Callable[[], str]) -> None:
    """A second creation changes nothing: 204 with the same metadata, 409 with other; a deleted queue is not there."""
    name = unique()
    client = queues.create_queue(name, metadata={"one": "1"})
    assert refusal(client.create_queue, metadata={"one": "1"}) == (204, "QueueAlreadyExists")
    assert refusal(client.create_queue, metadata={"one": "2"}) == (409, "QueueAlreadyExists")
    client.delete_queue()
    assert refusal(client.delete_queue) == (404, "QueueNotFound")
    for call in (client.get_queue_properties, client.receive_message, client.peek_messages, client.clear_messages):
        assert refusal(call) == (404, "QueueNotFound")
    assert refusal(client.send_message, "x") == (404, "QueueNotFound")


BAD_NAMES = {"ab": "OutOfRangeInput", "a" * 64: "OutOfRangeInput", "Upper": "InvalidResourceName"}


@pytest.mark.parametrize(("name", "code"), [*BAD_NAMES.items(), ("a--b", "InvalidResourceName")])
def test_names_have_rules(queues: QueueServiceClient, name: str, code: str) -> None:
    """3 to 63 lower-case letters, digits and single hyphens."""
    assert refusal(queues.create_queue, name) == (400, code)


def test_queues_are_listed(queues: QueueServiceClient, unique: Callable[[], str]) -> None:
    """By prefix, in order, page by page, with their metadata on request."""
    prefix = unique()
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        queues.create_queue(name, metadata={"number": name[-1]})
    pages = queues.list_queues(prefix, include_metadata=True, results_per_page=2).by_page()
    found = [[(queue.name, queue.metadata) for queue in page] for page in pages]
    assert [len(page) for page in found] == [2, 2, 1]
    assert [one for page in found for one in page] == [(name, {"number": name[-1]}) for name in names]


def test_metadata_is_replaced(queue: QueueClient) -> None:
    """What is set is read back, and replaces what was there."""
    queue.set_queue_metadata({"a": "1", "b": "two words"})
    queue.set_queue_metadata({"c": "3"})
    assert queue.get_queue_properties().metadata == {"c": "3"}


@pytest.mark.parametrize("text", ["plain", " spaces ", "<a>&\"'</a>]]>", "數據 🚂 ü", "tab\tand\nline", "x" * 65536])
def test_a_text_is_the_same_when_it_comes_back(queue: QueueClient, text: str) -> None:
    """Whatever XML can hold, up to 64 KiB."""
    queue.send_message(text)
    message = queue.receive_message()
    assert message is not None
    assert message.content == text


def test_base64_is_the_clients_matter(queue: QueueClient, queues: QueueServiceClient) -> None:
    """A client that encodes its messages reads them back."""
    client = queues.get_queue_client(
        queue.queue_name,
        message_encode_policy=TextBase64EncodePolicy(),
        message_decode_policy=TextBase64DecodePolicy(),
    )
    client.send_message("\x00 text")
    message = client.receive_message()
    assert message is not None
    assert message.content == "\x00 text"


def test_over_64_kib_is_refused(queue: QueueClient) -> None:
    """Bytes count, not characters."""
    assert refusal(queue.send_message, "ü" * 32769) == (413, "RequestBodyTooLarge")


def test_what_a_message_knows(queue: QueueClient) -> None:
    """Sending and receiving give id, receipt, and the times of insertion, expiry and next visibility."""
    before = datetime.now(UTC).replace(microsecond=0)
    sent = queue.send_message("x")
    got = queue.receive_message(visibility_timeout=60)
    assert got is not None
    assert got.id == sent.id
    assert got.pop_receipt
    assert got.pop_receipt != sent.pop_receipt
    assert got.dequeue_count == 1
    assert got.inserted_on is not None
    assert before <= got.inserted_on <= datetime.now(UTC)
    assert got.expires_on == got.inserted_on + timedelta(seconds=WEEK)
    assert got.next_visible_on is not None
    assert abs(got.next_visible_on - got.inserted_on - timedelta(seconds=60)) < timedelta(seconds=5)


def test_first_in_first_out(queue: QueueClient) -> None:
    """Messages come in the order in which they were sent, at most 32 at a time, and each to one receiver."""
    for number in range(40):
        queue.send_message(str(number))
    first = list(queue.receive_messages(messages_per_page=32, max_messages=32))
    rest = list(queue.receive_messages(messages_per_page=32, max_messages=32))
    assert [message.content for message in first + rest] == [str(number) for number in range(40)]
    assert queue.receive_message() is None


def test_peeking_takes_nothing(queue: QueueClient) -> None:
    """A peeked message has no receipt, and is as visible and as often dequeued as before."""
    queue.send_message("x")
    (peeked,) = queue.peek_messages(max_messages=5)
    assert (peeked.content, peeked.dequeue_count, peeked.pop_receipt) == ("x", 0, None)
    got = queue.receive_message()
    assert got is not None
    assert got.dequeue_count == 1
    assert queue.peek_messages() == []


def test_a_message_comes_back_after_its_timeout(queue: QueueClient) -> None:
    """A received message is hidden for its timeout, then comes again, counted once more, under another receipt."""
    queue.send_message("x")
    first = queue.receive_message(visibility_timeout=1)
    assert first is not None
    assert queue.receive_message() is None
    second = wait_for(lambda: queue.receive_message(visibility_timeout=60), 60, "the message to come back")
    assert (second.id, second.dequeue_count) == (first.id, 2)
    assert refusal(queue.delete_message, first) == (400, "PopReceiptMismatch")
    assert refusal(queue.update_message, first, visibility_timeout=0) == (400, "PopReceiptMismatch")
    queue.delete_message(second)
    assert refusal(queue.delete_message, second) == (404, "MessageNotFound")
    assert refusal(queue.update_message, second, visibility_timeout=0) == (404, "MessageNotFound")


def test_a_receipt_holds_until_the_next_one(queue: QueueClient) -> None:
    """A message that is visible again, but that nobody took since, is deleted with the old receipt."""
    queue.send_message("x")
    got = queue.receive_message(visibility_timeout=1)
    assert got is not None
    wait_for(queue.peek_messages, 60, "the message to be visible")
    queue.delete_message(got)
    assert queue.peek_messages() == []


def test_the_sender_may_delete(queue: QueueClient) -> None:
    """The receipt that came with the sending works too."""
    sent = queue.send_message("x")
    queue.delete_message(sent)
    assert queue.receive_message() is None


def test_updating_moves_the_time_and_the_text(queue: QueueClient) -> None:
    """An update hides from now on, gives a new receipt, and may change the text; the count stays."""
    queue.send_message("old")
    got = queue.receive_message()
    assert got is not None
    updated = queue.update_message(got, visibility_timeout=0, content="new")
    assert updated.pop_receipt != got.pop_receipt
    assert refusal(queue.delete_message, got) == (400, "PopReceiptMismatch")
    again = queue.receive_message(visibility_timeout=60)
    assert again is not None
    assert (again.content, again.dequeue_count) == ("new", 2)
    hidden = queue.update_message(again, visibility_timeout=30)
    assert hidden.content == "new"
    assert queue.peek_messages() == []
    queue.delete_message(again.id, hidden.pop_receipt)


def test_a_delay_hides_a_new_message(queue: QueueClient) -> None:
    """A message sent with a delay is counted and not seen until then; a later one without is seen first."""
    queue.send_message("late", visibility_timeout=1)
    queue.send_message("now")
    assert [message.content for message in queue.peek_messages(max_messages=5)] == ["now"]
    assert queue.get_queue_properties().approximate_message_count == 2
    wait_for(lambda: len(queue.peek_messages(max_messages=5)) == 2, 60, "the delay to end")


def test_a_message_expires(queue: QueueClient) -> None:
    """After its time to live it is gone; -1 is for ever."""
    queue.send_message("short", time_to_live=1)
    queue.send_message("for ever", time_to_live=-1)
    wait_for(lambda: len(queue.peek_messages(max_messages=5)) == 1, 60, "the message to expire")
    wait_for(lambda: queue.get_queue_properties().approximate_message_count == 1, 60, "the count to follow")
    got = queue.receive_message()
    assert got is not None
    assert got.content == "for ever"
    assert got.expires_on is not None
    assert got.expires_on.year == 9999


def test_an_expired_message_has_no_receipt_left(queue: QueueClient) -> None:
    """Whoever holds a message beyond its life can't delete it."""
    sent = queue.send_message("short", time_to_live=1)
    wait_for(lambda: not queue.peek_messages(), 60, "the message to expire")
    assert refusal(queue.delete_message, sent) == (404, "MessageNotFound")


@pytest.mark.parametrize(("options", "code"), [
    ({"visibility_timeout": -1}, "OutOfRangeQueryParameterValue"),
    ({"visibility_timeout": WEEK + 1}, "OutOfRangeQueryParameterValue"),
    ({"time_to_live": 0}, "InvalidQueryParameterValue"),
    ({"time_to_live": 10, "visibility_timeout": 10}, "InvalidQueryParameterValue"),
])  # fmt: skip
def test_times_have_bounds(queue: QueueClient, options: dict[str, int], code: str) -> None:
    """A delay is 0 to 7 days and shorter than the life; a life is at least a second, or for ever."""
    assert refusal(queue.send_message, "x", **options) == (400, code)


@pytest.mark.parametrize("seconds", [0, WEEK + 1])
def test_a_receiver_hides_for_a_second_to_a_week(queue: QueueClient, seconds: int) -> None:
    """Zero would be a peek."""
    assert refusal(queue.receive_message, visibility_timeout=seconds) == (400, "OutOfRangeQueryParameterValue")


def test_a_batch_has_at_most_32(queue: QueueClient) -> None:
    """More are not received at once; the package itself checks the peeked ones."""
    pages = queue.receive_messages(messages_per_page=33)
    assert refusal(lambda: list(pages)) == (400, "OutOfRangeQueryParameterValue")


def test_clearing(queue: QueueClient) -> None:
    """All messages go, hidden ones too; the queue and its metadata stay."""
    queue.set_queue_metadata({"a": "1"})
    queue.send_message("x", visibility_timeout=100)
    held = queue.send_message("y")
    queue.clear_messages()
    properties = queue.get_queue_properties()
    assert (properties.approximate_message_count, properties.metadata) == (0, {"a": "1"})
    assert refusal(queue.delete_message, held) == (404, "MessageNotFound")
    queue.send_message("z")
    assert [message.content for message in queue.peek_messages(max_messages=5)] == ["z"]


def test_a_new_queue_of_an_old_name_is_empty(queues: QueueServiceClient, unique: Callable[[], str]) -> None:
    """Messages of a deleted queue never come back."""
    client = queues.create_queue(unique())
    client.send_message("x")
    client.delete_queue()
    client.create_queue()
    assert client.peek_messages() == []
    assert client.get_queue_properties().approximate_message_count == 0


def test_service_properties(queues: QueueServiceClient) -> None:
    """They can be read, and what is written is read back."""
    found = queues.get_service_properties()
    assert found["analytics_logging"].version == "1.0"
    queues.set_service_properties(analytics_logging=found["analytics_logging"], cors=[])
    assert queues.get_service_properties()["cors"] == []
