"""Retries and dead letters with real queues and containers, in scaled time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

SCALE = 0.0005


@pytest.fixture
def grave(store: Any) -> ContainerClient:
    container: ContainerClient = store.container()
    return container


@pytest.fixture
def dead_letter(grave: ContainerClient) -> dict[str, Any]:
    return {"endpointType": "StorageBlob", "properties": {"blobContainerName": grave.container_name}}


def letters(grave: ContainerClient) -> list[dict[str, Any]]:
    return [json.loads(grave.download_blob(name).readall())[0] for name in grave.list_blob_names()]


def test_a_missing_queue_ends_in_a_dead_letter_after_all_attempts(
    new_grid: Any, to_queue: Any, custom_event: Any, grave: ContainerClient, dead_letter: dict[str, Any]
) -> None:
    """The dead letter is the event with the reason, the attempts, the last outcome and the times."""
    rest = {"retryPolicy": {"maxDeliveryAttempts": 3}, "deadLetterDestination": dead_letter}
    grid = new_grid([to_queue("team", "not-there", **rest)], retry_time_scale=SCALE)
    grid.publish(custom_event("e1")).raise_for_status()
    state = grid.barrier()
    assert (state["dead_lettered"], state["attempts_failed"], state["delivered"]) == (1, 3, 0)
    (letter,) = letters(grave)
    assert letter["id"] == "e1"
    assert letter["data"] == {"run": "r1"}
    assert letter["deadLetterReason"] == "MaxDeliveryAttemptsExceeded"
    assert (letter["deliveryAttempts"], letter["lastDeliveryOutcome"]) == (3, "NotFound")
    assert datetime.fromisoformat(letter["publishTime"]) < datetime.fromisoformat(letter["lastDeliveryAttemptTime"])
    (name,) = grave.list_blob_names()
    assert re.fullmatch(r"TO-NOT-THERE/20\d\d/\d+/\d+/\d+/[0-9a-f-]{36}\.json", name)


def test_cloud_events_have_lower_case_dead_letter_attributes(
    new_grid: Any, to_queue: Any, custom_event: Any, grave: ContainerClient, dead_letter: dict[str, Any]
) -> None:
    """In the CloudEvents schema the added attributes are lower case, because CloudEvents requires lower-case names."""
    rest = {"retryPolicy": {"maxDeliveryAttempts": 1}, "eventDeliverySchema": "CloudEventSchemaV1_0"}
    subscription = to_queue("team", "not-there", deadLetterDestination=dead_letter, **rest)
    grid = new_grid([subscription], retry_time_scale=SCALE)
    grid.publish(custom_event()).raise_for_status()
    grid.barrier()
    (letter,) = letters(grave)
    assert (letter["specversion"], letter["deadletterreason"]) == ("1.0", "MaxDeliveryAttemptsExceeded")
    assert {"deliveryattempts", "lastdeliveryoutcome", "publishtime", "lastdeliveryattempttime"} <= letter.keys()


def test_an_event_over_64_kib_is_dead_lettered_at_once(
    new_grid: Any, to_queue: Any, custom_event: Any, store: Any, grave: ContainerClient, dead_letter: dict[str, Any]
) -> None:
    """An event too large for a queue message is not retried. An event at the limit is delivered."""
    queue = store.queue()
    grid = new_grid([to_queue("team", queue, deadLetterDestination=dead_letter)], retry_time_scale=SCALE)
    grid.publish(custom_event("fits", data="x" * 48_000), custom_event("large", data="x" * 49_200)).raise_for_status()
    grid.barrier()
    assert [event["id"] for event in store.messages(queue)] == ["fits"]
    (letter,) = letters(grave)
    assert (letter["id"], letter["deliveryAttempts"]) == ("large", 1)
    assert letter["deadLetterReason"] == "UndeliverableDueToHttpPayloadTooLarge"


def test_time_to_live_ends_in_a_dead_letter(
    new_grid: Any, to_queue: Any, custom_event: Any, grave: ContainerClient, dead_letter: dict[str, Any]
) -> None:
    """An event beyond its time to live is dead-lettered with this reason, even if attempts are left."""
    rest = {"retryPolicy": {"eventTimeToLiveInMinutes": 1}, "deadLetterDestination": dead_letter}
    grid = new_grid([to_queue("team", "not-there", **rest)], retry_time_scale=SCALE)
    grid.publish(custom_event()).raise_for_status()
    grid.barrier()
    (letter,) = letters(grave)
    assert letter["deadLetterReason"] == "TimeToLiveExceeded"
    assert letter["deliveryAttempts"] < 30


def test_without_a_dead_letter_container_events_are_dropped(
    new_grid: Any, to_queue: Any, custom_event: Any, store: Any
) -> None:
    """An undeliverable event is dropped if no dead-letter destination is configured, or if its container stays
    missing."""
    missing = {"endpointType": "StorageBlob", "properties": {"blobContainerName": "not-there"}}
    policy = {"retryPolicy": {"maxDeliveryAttempts": 1}}
    nowhere = [
        to_queue("team", "not-there", **policy),
        to_queue("team", "not-here", deadLetterDestination=missing, **policy),
    ]
    grid = new_grid(nowhere, retry_time_scale=SCALE / 10)
    grid.publish(custom_event()).raise_for_status()
    state = grid.barrier()
    assert (state["dropped"], state["dead_lettered"], state["pending"]) == (2, 0, 0)


def test_a_queue_that_appears_gets_its_event(new_grid: Any, to_queue: Any, custom_event: Any, store: Any) -> None:
    """A later attempt delivers an event when the destination exists."""
    queue = store.queue()
    store.queues.delete_queue(queue)
    grid = new_grid([to_queue("team", queue)], retry_time_scale=SCALE)
    grid.publish(custom_event("late")).raise_for_status()
    assert grid.get("/control/barrier?timeout=0.1").status_code == 504
    store.queues.create_queue(queue).close()
    state = grid.barrier()
    assert state["attempts_failed"] > 0
    assert [event["id"] for event in store.messages(queue)] == ["late"]


def test_dead_letter_blobs_are_events_only_for_who_wants_them(
    new_grid: Callable[..., Any],
    to_queue: Any,
    in_container: Any,
    custom_event: Any,
    store: Any,
    grave: ContainerClient,
    dead_letter: dict[str, Any],
) -> None:
    """A subscription to the container of dead letters gets an event for each. Without such a subscription the blob
    is not even read."""
    queue, failing = store.queue(), {"retryPolicy": {"maxDeliveryAttempts": 1}, "deadLetterDestination": dead_letter}
    watched = [to_queue("storage", queue, filter=in_container(grave.container_name))]
    broken = to_queue("team", "not-there", **failing)
    grid = new_grid([broken, *watched], retry_time_scale=SCALE)
    grid.publish(custom_event()).raise_for_status()
    grid.barrier()
    assert grid.barrier()["received"] == 2
    (event,) = store.messages(queue)
    assert event["subject"].endswith(next(iter(grave.list_blob_names())))
    unwatched = new_grid([broken], retry_time_scale=SCALE)
    unwatched.publish(custom_event()).raise_for_status()
    unwatched.barrier()
    assert unwatched.barrier()["received"] == 1
