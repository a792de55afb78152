"""Promises of the storage adapters beyond their ports: requests, memory, pending copies, a dead account, settings."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from emulators.testing.azurite import Azurite
from shared.adapters.storage import account, copying
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.storage.queues import StorageQueues
from shared.adapters.tables.drop_table import TableDrops
from shared.adapters.translation import without_secrets
from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Unavailable
from shared.kernel.settings import Storage
from shared.kernel.storage import Copy, Place
from tests.contract.conftest import NOW
from tests.contract.wire import Recording

Names = Callable[[], str]
ROOT = Path(__file__).parents[2]


@contextmanager
def watched(account: Azurite, change: Any = None) -> Iterator[tuple[StorageBlobs, Recording]]:
    transport = Recording(change)
    with BlobServiceClient.from_connection_string(account.connection_string, transport=transport) as service:
        yield StorageBlobs(service), transport


def sources(blobs: StorageBlobs, container: str, count: int) -> list[Copy]:
    with ThreadPoolExecutor(8) as pool:
        written = pool.map(lambda i: blobs.write(container, f"run/{i:04d}", b"x", "text/plain"), range(count))
        return [Copy(blob, container, f"{container}-to", f"e/{blob.name}") for blob in written]


def test_a_copy_costs_one_request_and_a_resumed_one_none(
    account: Azurite, clients: StorageClients, unique: Names
) -> None:
    """50 copies take one listing and 50 requests, plus the container; repeating them takes the listing alone."""
    copies = sources(StorageBlobs(clients.blob), unique(), 50)
    with watched(account) as (blobs, transport):
        assert len(list(blobs.copy(copies))) == 50
        assert len([r for r in transport.requests if r.startswith("GET")]) == 1
        transport.requests.clear()
        assert len(list(blobs.copy(copies))) == 50
        assert len(transport.requests) == 1


def test_copies_go_on_where_an_earlier_attempt_died(account: Azurite, clients: StorageClients, unique: Names) -> None:
    """After a caller died midway, only the missing blobs are copied, in batches of any size."""
    copies = sources(StorageBlobs(clients.blob), unique(), 30)
    blobs = StorageBlobs(clients.blob)
    started = blobs.copy(copies)
    assert isinstance(started, Generator)
    next(started)
    started.close()
    done = len(list(blobs.list(Place(copies[0].to_container, ""))))
    assert 1 <= done <= 30
    with watched(account) as (again, transport):
        assert {blob.name for blob in again.copy(copies)} == {copy.to_name for copy in copies}
        assert len([r for r in transport.requests if r.startswith("PUT")]) == 30 - done


def test_attempts_at_the_same_time_make_one_copy(clients: StorageClients, unique: Names) -> None:
    """Four concurrent attempts return the same etag for each copy, and the copy has that etag."""
    blobs, container = StorageBlobs(clients.blob), unique()
    copies = sources(blobs, container, 20)
    blobs.write(f"{container}-to", "other", b"", "text/plain")  # creates the container
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: {blob.name: blob.etag for blob in blobs.copy(copies)}, range(4)))
    now = {blob.name: blob.etag for blob in blobs.list(Place(f"{container}-to", "e/"))}
    assert told == [now] * 4


def test_copies_are_held_in_batches(clients: StorageClients, unique: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most one batch of a long iterator is read ahead of the returned results."""
    monkeypatch.setattr(copying, "BATCH", 10)
    copies, drawn = sources(StorageBlobs(clients.blob), unique(), 35), 0

    def counted() -> Iterator[Copy]:
        nonlocal drawn
        for copy in copies:
            drawn += 1
            yield copy

    for given, _ in enumerate(StorageBlobs(clients.blob).copy(counted())):
        assert drawn <= given + 10
    assert drawn == 35


def test_no_more_copies_run_at_once_than_asked(account: Azurite, clients: StorageClients, unique: Names) -> None:
    """`concurrency` limits the requests under way."""
    copies = sources(StorageBlobs(clients.blob), unique(), 30)
    lock, now, most = threading.Lock(), 0, 0

    class Counting(Recording):
        def send(self, request: Any, **kwargs: Any) -> Any:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            try:
                return super().send(request, **kwargs)
            finally:
                with lock:
                    now -= 1

    with BlobServiceClient.from_connection_string(account.connection_string, transport=Counting()) as service:
        assert len(list(StorageBlobs(service).copy(copies, concurrency=3))) == 30
    assert 1 < most <= 3


class PendingCopies:
    """Makes Azurite's copies, which finish at once, look `pending` in the first checks."""

    def __init__(self, looks: int, end: str = "success") -> None:
        self.left, self.end = looks, end

    def __call__(self, request: Any, response: Any) -> None:
        if "x-ms-copy-source" in request.headers:
            response.headers["x-ms-copy-status"] = "pending"
        elif request.method == "HEAD":
            response.headers["x-ms-copy-status"] = "pending" if self.left > 0 else self.end
            self.left -= 1


def listed_as(status: str) -> Callable[[Any, Any], None]:
    """Makes listings report finished copies with this status."""

    def change(request: Any, response: Any) -> None:
        if request.method == "GET":
            found = b"<CopyStatus>success</CopyStatus>"
            assert found in response.read()
            response._content = response.read().replace(found, f"<CopyStatus>{status}</CopyStatus>".encode())

    return change


def test_a_pending_copy_is_awaited(account: Azurite, clients: StorageClients, unique: Names) -> None:
    """A copy that is not finished at its start is polled until it is."""
    copies = sources(StorageBlobs(clients.blob), unique(), 1)
    with watched(account, PendingCopies(looks=2)) as (blobs, transport):
        (made,) = blobs.copy(copies)
    assert len([r for r in transport.requests if r.startswith("HEAD")]) == 3
    assert made.metadata == {"source_etag": copies[0].source.etag}
    assert [made] == list(StorageBlobs(clients.blob).list(Place(copies[0].to_container, "")))


def test_a_pending_copy_of_an_earlier_attempt_is_not_started_again(
    account: Azurite, clients: StorageClients, unique: Names
) -> None:
    """A copy that the listing shows as pending is awaited, without a second copy."""
    copies = sources(StorageBlobs(clients.blob), unique(), 1)
    list(StorageBlobs(clients.blob).copy(copies))

    with watched(account, listed_as("pending")) as (blobs, transport):
        (made,) = blobs.copy(copies)
    assert made.name == copies[0].to_name
    assert [r.split()[0] for r in transport.requests] == ["GET", "HEAD"]


def test_a_copy_that_takes_too_long_is_unavailable(
    account: Azurite, clients: StorageClients, unique: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the timeout the caller gets Unavailable, and may retry."""
    monkeypatch.setattr(copying, "PATIENCE", 0.0)
    copies = sources(StorageBlobs(clients.blob), unique(), 1)
    with watched(account, PendingCopies(looks=10**6)) as (blobs, _), pytest.raises(Unavailable, match=r"continues"):
        list(blobs.copy(copies))


@pytest.mark.parametrize("end", ["failed", "aborted"])
def test_a_failed_copy_is_repeated_by_the_next_call(
    account: Azurite, clients: StorageClients, unique: Names, end: str
) -> None:
    """A copy that fails raises Unavailable; a copy that the listing shows as failed is made again."""
    copies = sources(StorageBlobs(clients.blob), unique(), 1)
    with watched(account, PendingCopies(1, end)) as (blobs, _), pytest.raises(Unavailable, match=end):
        list(blobs.copy(copies))

    with watched(account, listed_as(end)) as (blobs, transport):
        list(blobs.copy(copies))
    assert [r.split()[0] for r in transport.requests] == ["GET", "PUT"]


def test_a_growing_log_can_be_copied_and_copied_again(clients: StorageClients, unique: Names) -> None:
    """An append blob is copied as it is now, and copied again after it has grown."""
    container = unique()
    blobs, target = StorageBlobs(clients.blob), f"{container}-to"
    clients.blob.create_container(container)
    log = clients.blob.get_blob_client(container, "log")
    log.create_append_blob()
    for text in (b"one\n", b"two\n"):
        log.append_block(text)
        (source,) = blobs.list(Place(container, ""))
        list(blobs.copy([Copy(source, container, target, "log")]))
    assert list(blobs.lines(target, "log")) == ["one", "two"]


def test_long_blobs_are_read_in_pieces(clients: StorageClients, unique: Names) -> None:
    """Lines across the boundaries of the 4 MiB pieces come whole, also if a boundary splits a character."""
    container, line = unique(), "é" * 1_000_003
    StorageBlobs(clients.blob).write(container, "log", f"{line}\n".encode() * 5, "text/plain")
    assert all(found == line for found in StorageBlobs(clients.blob).lines(container, "log"))
    assert len(list(StorageBlobs(clients.blob).lines(container, "log"))) == 5
    assert StorageBlobs(clients.blob).read(container, "log", 2**24) == f"{line}\n".encode() * 5


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageClients]:
    """The clients of an account where nothing listens (port 9 is `discard`, which no service uses)."""
    place = "http://127.0.0.1:9/devstoreaccount1"
    endpoints = "".join(f"{service}Endpoint={place};" for service in ("Blob", "Queue", "Table"))
    made = account.clients(Storage(connection_string=f"AccountName=devstoreaccount1;AccountKey=a2V5;{endpoints}"))
    with made.blob, made.queue, made.table:
        yield made


def test_a_dead_account_is_unavailable_within_seconds(dead: StorageClients) -> None:
    """Every adapter raises Unavailable, soon enough for a health endpoint, and the error names what it tried."""
    calls: list[Callable[[], Any]] = [
        lambda: StorageBlobs(dead.blob).check(),
        lambda: list(StorageBlobs(dead.blob).list(Place("drops", "a/"))),
        lambda: StorageQueues(dead.queue).put("drop-events", "{}"),
        lambda: TableDrops(dead.table).get(DropKey("a", "b")),
        lambda: TableDrops(dead.table).insert(Drop(DropKey("a", "b"), DropState.OPEN, "t", NOW)),
    ]

    def error_of(call: Callable[[], Any]) -> str:
        with pytest.raises(Unavailable) as caught:
            call()
        return str(caught.value)

    with ThreadPoolExecutor(len(calls)) as pool:
        messages = list(pool.map(error_of, calls, timeout=20))
    assert "drops/a/" in messages[1]
    assert "drop-events" in messages[2]


def test_an_account_is_reached_by_its_name_with_the_apps_identity() -> None:
    """With an account name the endpoints are Azure's, and nothing is requested before the first call."""
    made = account.clients(Storage.of_account("acme"))
    with made.blob, made.queue, made.table:
        assert made.blob.url == "https://acme.blob.core.windows.net/"
        assert made.queue.url == "https://acme.queue.core.windows.net/"
        assert made.table.url == "https://acme.table.core.windows.net"
        assert type(made.blob.credential).__name__ == "DefaultAzureCredential"
        made.blob.credential.close()


def test_importing_the_adapters_imports_no_sdk() -> None:
    """A cold start pays for azure.core alone; storage, tables, identity and Azure ML are imported on first use."""
    code = """
import json, sys
from shared.adapters.azureml import clusters, jobs
from shared.adapters.outgoing import eventgrid
from shared.adapters.storage import account, blobs, queues
from shared.adapters.tables import asset_table, decision_table, drop_table, run_table
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    sdks = ("azure.storage", "azure.data", "azure.identity", "azure.ai", "azure.eventgrid", "requests", "aiohttp")
    assert [name for name in json.loads(done.stdout) if name.startswith(sdks)] == []


@pytest.mark.parametrize(
    "text",
    [
        "https://a.blob.core.windows.net/c/b?sv=2024&se=2026&sig=SECRET%3D",
        "AccountName=a;AccountKey=SECRET==;",
        "Authorization: Bearer SECRET.SECRET",
        "https://app/runtime/webhooks/eventgrid?functionName=f&code=SECRET",
    ],
)
def test_messages_hold_no_secrets(text: str) -> None:
    """Signatures, keys and tokens are removed from the service's messages."""
    assert "SECRET" not in without_secrets(text)
