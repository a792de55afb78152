"""Blob events of the emulators' own storage, whose log has the facts of each blob."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient

from emulator_tests.eventgrid.conftest import Store
from emulators.storage import services


@dataclass(frozen=True)
class Account:
    connection_string: str
    access_log: Path


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    home = tmp_path_factory.mktemp("own")
    log = home / "blobs.log"
    with services.start(home, blob_log=str(log)) as running:
        yield Account(running.connection_string, log)


@pytest.fixture(scope="module")
def own(account: Account) -> Iterator[Store]:
    with (
        BlobServiceClient.from_connection_string(account.connection_string) as blobs,
        QueueServiceClient.from_connection_string(account.connection_string) as queues,
    ):
        yield Store(account, blobs, queues)  # type: ignore[arg-type]


@pytest.fixture
def told(
    account: Account, own: Store, new_grid: Callable[..., Any], to_queue: Callable[..., Any]
) -> Callable[[], list[dict[str, Any]]]:
    """Return the events of any type since the last call, in the order of the changes."""
    queue = own.queue()
    grid = new_grid([to_queue("storage", queue)], storage=account)

    def take() -> list[dict[str, Any]]:
        grid.barrier()
        return sorted(own.messages(queue), key=lambda event: str(event["data"]["sequencer"]))

    return take


@pytest.fixture
def container(own: Store) -> ContainerClient:
    return own.container()


def test_a_deleted_blob_is_an_event(told: Callable[[], list[dict[str, Any]]], container: ContainerClient) -> None:
    """The event has the type of the deleted blob. Deleting only snapshots, a refused request and deleting a
    container cause no event."""
    blob = container.upload_blob("a b", b"123", content_type="text/x-odd")
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="only")
    blob.delete_blob()
    assert not blob.exists()
    container.delete_container()
    created, deleted = told()
    assert (created["eventType"], deleted["eventType"]) == (
        "Microsoft.Storage.BlobCreated",
        "Microsoft.Storage.BlobDeleted",
    )
    assert (deleted["subject"], deleted["data"]["url"]) == (created["subject"], created["data"]["url"])
    assert {key: deleted["data"].get(key) for key in ("api", "contentType", "blobType", "contentLength", "eTag")} == {
        "api": "DeleteBlob", "contentType": "text/x-odd", "blobType": "BlockBlob", "contentLength": None, "eTag": None,
    }  # fmt: skip


def test_a_batch_of_deletions_is_as_many_events(
    told: Callable[[], list[dict[str, Any]]], container: ContainerClient
) -> None:
    """Each blob of a batch has its own event."""
    for name in ("a", "b"):
        container.upload_blob(name, b"1")
    container.delete_blobs("a", "b")
    events = [event["eventType"].rpartition(".")[2] for event in told()]
    assert events == ["BlobCreated", "BlobCreated", "BlobDeleted", "BlobDeleted"]


def test_a_tier_is_an_event(told: Callable[[], list[dict[str, Any]]], container: ContainerClient) -> None:
    """A changed tier is an event at once. For an archived blob, the start of the rehydration is the first event."""
    blob = container.upload_blob("a", b"123")
    for tier in ("Cool", "Archive", "Hot"):
        blob.set_standard_blob_tier(tier)
    _, *moved = told()
    kinds = [(event["eventType"], event["data"]["api"], event["data"]["contentLength"]) for event in moved]
    assert kinds == [
        ("Microsoft.Storage.BlobTierChanged", "SetBlobTier", 3),
        ("Microsoft.Storage.BlobTierChanged", "SetBlobTier", 3),
        ("Microsoft.Storage.AsyncOperationInitiated", "SetBlobTier", 3),
    ]


def test_a_blob_has_one_name_in_its_events(
    told: Callable[[], list[dict[str, Any]]], container: ContainerClient
) -> None:
    """A backslash in a name is a slash in the subject, too."""
    container.upload_blob("a\\b", b"1")
    (event,) = told()
    assert event["subject"].endswith(f"/{container.container_name}/blobs/a/b")
