"""The queue protocol, as Microsoft's package uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import AccessPolicy, QueueClient, QueueSasPermissions, QueueServiceClient, generate_queue_sas

from emulator_tests.storage.conftest import Side
from emulators.storage.keys import ACCOUNT, KEY

WEEK = 7 * 24 * 3600


@pytest.fixture
def queue(queues: QueueServiceClient, unique: Callable[[], str]) -> Iterator[QueueClient]:
    client = queues.create_queue(unique())
    yield client
    client.delete_queue()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """Return the status and code with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    code = caught.value.error_code  # type: ignore[attr-defined]
    return caught.value.status_code, str(getattr(code, "value", code))


BAD_NAMES = {"ab": "OutOfRangeInput", "a" * 64: "OutOfRangeInput", "Upper": "InvalidResourceName"}


@pytest.mark.parametrize(("name", "code"), [*BAD_NAMES.items(), ("a--b", "InvalidResourceName")])
def test_names_have_rules(queues: QueueServiceClient, name: str, code: str) -> None:
    """A name has 3 to 63 lower-case letters, digits and single hyphens."""
    assert refusal(queues.create_queue, name) == (400, code)


@pytest.mark.parametrize("text", ["plain", " spaces ", "<a>&\"'</a>]]>", "數據 🚂 ü", "tab\tand\nline", "x" * 65536])
def test_a_text_is_the_same_when_it_comes_back(queue: QueueClient, text: str) -> None:
    """Any text that XML can contain, up to 64 KiB, is received unchanged."""
    queue.send_message(text)
    message = queue.receive_message()
    assert message is not None
    assert message.content == text


def test_over_64_kib_is_refused(queue: QueueClient) -> None:
    """The limit counts bytes, not characters."""
    assert refusal(queue.send_message, "ü" * 32769) == (413, "RequestBodyTooLarge")


@pytest.mark.parametrize(("options", "code"), [
    ({"visibility_timeout": -1}, "OutOfRangeQueryParameterValue"),
    ({"visibility_timeout": WEEK + 1}, "OutOfRangeQueryParameterValue"),
    ({"time_to_live": 0}, "InvalidQueryParameterValue"),
    ({"time_to_live": 10, "visibility_timeout": 10}, "InvalidQueryParameterValue"),
])  # fmt: skip
def test_times_have_bounds(queue: QueueClient, options: dict[str, int], code: str) -> None:
    """A delay is 0 to 7 days and less than the time to live, which is at least a second or infinite."""
    assert refusal(queue.send_message, "x", **options) == (400, code)


@pytest.mark.parametrize(("version", "longest"), [("2017-04-17", WEEK), ("2017-07-29", 2**31 - 1)])
def test_a_message_has_a_longest_life(side: Side, queue: QueueClient, version: str, longest: int) -> None:
    """The longest time to live is a week in older versions of the protocol. Since 2017-07-29 it is any number of
    seconds in 32 bits."""
    end = datetime.now(UTC) + timedelta(hours=1)
    sas = generate_queue_sas(ACCOUNT, queue.queue_name, KEY, permission=QueueSasPermissions(add=True), expiry=end)
    statuses = [
        requests.post(
            f"{side.queue_url}/{queue.queue_name}/messages?messagettl={seconds}&{sas}",
            "<QueueMessage><MessageText>x</MessageText></QueueMessage>",
            headers={"x-ms-version": version},
            timeout=10,
        ).status_code
        for seconds in (longest, longest + 1)
    ]
    assert statuses == [201, 400]


@pytest.mark.parametrize("seconds", [0, WEEK + 1])
def test_a_receiver_hides_for_a_second_to_a_week(queue: QueueClient, seconds: int) -> None:
    """A visibility timeout is a second to a week. Zero would be a peek."""
    assert refusal(queue.receive_message, visibility_timeout=seconds) == (400, "OutOfRangeQueryParameterValue")


def test_a_batch_has_at_most_32(queue: QueueClient) -> None:
    """Receiving more than 32 messages at once is refused. For peeking, the package itself checks the limit."""
    pages = queue.receive_messages(messages_per_page=33)
    assert refusal(lambda: list(pages)) == (400, "OutOfRangeQueryParameterValue")


def test_clearing(queue: QueueClient) -> None:
    """Clearing removes every message, including hidden messages. The queue and its metadata are kept."""
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
    """Messages of a deleted queue do not reappear in a new queue of its name."""
    client = queues.create_queue(unique())
    client.send_message("x")
    client.delete_queue()
    client.create_queue()
    assert client.peek_messages() == []
    assert client.get_queue_properties().approximate_message_count == 0


def test_a_policy_has_the_permissions_of_queues(queue: QueueClient) -> None:
    """A policy with permissions that queues do not have is refused, and nothing is stored."""
    policy = AccessPolicy(permission="rwdl", expiry=datetime.now(UTC) + timedelta(hours=1))
    assert refusal(queue.set_queue_access_policy, {"one": policy}) == (400, "InvalidXmlDocument")
    assert queue.get_queue_access_policy() == {}
