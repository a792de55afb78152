"""Blob events from real writes to a real Azurite."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, ContainerClient

PREFIX = "/blobServices/default/containers"
CREATED_IN = {"includedEventTypes": ["Microsoft.Storage.BlobCreated"]}


@pytest.fixture(scope="module")
def watched(store: Any) -> ContainerClient:
    container: ContainerClient = store.container()
    return container


@pytest.fixture(scope="module")
def queue(store: Any) -> str:
    return str(store.queue())


@pytest.fixture(scope="module")
def grid(
    new_grid: Callable[..., Any],
    to_queue: Callable[..., Any],
    in_container: Callable[..., Any],
    watched: ContainerClient,
    queue: str,
) -> Any:
    properties = {"queueName": queue, "queueMessageTimeToLiveInSeconds": 3600}
    destination = {"endpointType": "StorageQueue", "properties": properties}
    wanted = CREATED_IN | in_container(watched.container_name)
    return new_grid([to_queue("storage", queue, destination=destination, filter=wanted)])


@pytest.fixture
def events(grid: Any, store: Any, queue: str) -> Callable[[], list[dict[str, Any]]]:
    """Return every event since the last call, in the order of the writes."""

    def take() -> list[dict[str, Any]]:
        grid.barrier()
        return sorted(store.messages(queue), key=lambda event: str(event["data"]["sequencer"]))

    return take


def test_an_upload_becomes_an_event_with_the_blobs_facts(watched: ContainerClient, events: Any, store: Any) -> None:
    """Etag, length, type and URL are the blob's, and the event's time is the time of the write."""
    before = datetime.now(UTC)
    blob = watched.upload_blob("digits/train.idx", b"12345", content_type="application/x-idx")
    (event,) = events()
    properties = blob.get_blob_properties()
    assert event["eventType"] == "Microsoft.Storage.BlobCreated"
    assert event["subject"] == f"{PREFIX}/{watched.container_name}/blobs/digits/train.idx"
    assert event["data"]["eTag"] == properties.etag
    assert (event["data"]["contentLength"], event["data"]["contentType"]) == (5, "application/x-idx")
    assert event["data"]["url"] == blob.url
    written = datetime.fromisoformat(event["eventTime"])
    assert before - timedelta(seconds=1) <= written <= datetime.now(UTC)  # the log has whole seconds


def test_each_api_is_told_apart(watched: ContainerClient, events: Any) -> None:
    """The event of a put, a committed block list, a copy, an append blob and a page blob has the operation and the
    blob's type."""
    put = watched.upload_blob("put", b"x")
    blocks = watched.get_blob_client("blocks")
    blocks.stage_block("AAAA", b"xyz")
    blocks.commit_block_list([BlobBlock("AAAA")])
    watched.get_blob_client("copy").start_copy_from_url(put.url)
    watched.get_blob_client("append").create_append_blob()
    watched.get_blob_client("page").create_page_blob(512)
    told = [(e["data"]["api"], e["data"]["blobType"], e["data"]["contentLength"]) for e in events()]
    assert told == [
        ("PutBlob", "BlockBlob", 1),
        ("PutBlockList", "BlockBlob", 3),
        ("CopyBlob", "BlockBlob", 1),
        ("PutBlob", "AppendBlob", 0),
        ("PutBlob", "PageBlob", 512),
    ]


def test_other_writes_and_failed_ones_make_no_event(watched: ContainerClient, events: Any) -> None:
    """Staged blocks, appended blocks, metadata, headers, tags, tiers, snapshots, leases, deletes and refused
    uploads cause no event."""
    blob = watched.upload_blob("silent", b"x")
    append = watched.get_blob_client("log")
    append.create_append_blob()
    assert len(events()) == 2
    append.append_block(b"line")
    blob.stage_block("AAAA", b"xx")
    blob.set_blob_metadata({"a": "b"})
    blob.set_http_headers()
    blob.set_blob_tags({"a": "b"})
    blob.set_standard_blob_tier("Cool")
    blob.create_snapshot()
    with pytest.raises(HttpResponseError):
        watched.upload_blob("silent", b"again")
    lease = blob.acquire_lease()
    with pytest.raises(HttpResponseError):
        watched.upload_blob("silent", b"again", overwrite=True)
    lease.release()
    blob.delete_blob(delete_snapshots="include")
    assert events() == []


NAMES = [
    "with space",
    "per%cent",
    "already%20encoded",
    "hash#tag",
    "a+b",
    "question?a=b&comp=block",
    "dir/",
    "a//b",
    "/leading",
    'quote"back\\slash',
    "日本/ü/😀.txt",
    "tab\there",
    "x" * 1024,
    "é" * 1024,
]


def test_names_are_right_whatever_they_hold(watched: ContainerClient, events: Any) -> None:
    """The subject contains the decoded name of the blob, for every name that Azure allows."""
    for name in NAMES:
        watched.upload_blob(name, b"x")
    prefix = f"{PREFIX}/{watched.container_name}/blobs/"
    told = events()
    assert [event["subject"].removeprefix(prefix) for event in told] == NAMES
    assert all(event["data"]["contentLength"] == 1 for event in told)


def test_overwrites_are_events_of_their_own_in_order(watched: ContainerClient, events: Any) -> None:
    """Each overwrite has its own id and a later sequencer. The last event has the final etag."""
    etags = [watched.upload_blob("again", b"x" * n, overwrite=True).get_blob_properties().etag for n in range(1, 6)]
    told = events()
    assert len({event["id"] for event in told}) == 5
    assert len({event["data"]["sequencer"] for event in told}) == 5
    assert told[-1]["data"]["eTag"] == etags[-1]


def test_a_blob_that_is_gone_still_has_its_event(grid: Any, watched: ContainerClient, events: Any, store: Any) -> None:
    """An upload that is deleted before the part reads the blob has an event with the facts of the log."""
    for number in range(20):
        watched.upload_blob(f"gone{number}", b"x")
        watched.delete_blob(f"gone{number}")
    told = events()
    assert {event["subject"].rsplit("/")[-1] for event in told} == {f"gone{number}" for number in range(20)}
    assert all(event["data"]["api"] == "PutBlob" and event["data"]["url"] for event in told)


def test_the_barrier_finds_every_blob(grid: Any, watched: ContainerClient, store: Any, queue: str) -> None:
    """After the barrier, all 300 uploads from eight connections are in the queue."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: watched.upload_blob(f"many/{n:03}", b"x"), range(300)))
    state = grid.barrier()
    subjects = {event["subject"].rsplit("/")[-1] for event in store.messages(queue)}
    assert subjects == {f"{n:03}" for n in range(300)}
    assert state["pending"] == 0


def test_messages_are_base64_json_one_event_each(grid: Any, watched: ContainerClient, store: Any, queue: str) -> None:
    """A queue message is one event's JSON in base64, as in Azure, and expires after the configured time."""
    watched.upload_blob("message", b"x")
    grid.barrier()
    with store.queues.get_queue_client(queue) as client:
        (message,) = client.receive_messages()
        assert base64.b64decode(message.content, validate=True).startswith(b'{"topic": ')
        assert message.expires_on - message.inserted_on == timedelta(hours=1)
        client.delete_message(message)
