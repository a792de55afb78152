"""Which blobs survive stops and kills. Only our service is tested, because Azurite loses the writes of its last
seconds."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContentSettings, CorsRule

from emulator_tests.storage import inside
from emulator_tests.storage.conftest import PAGE
from emulator_tests.storage.raw import BLOCK_BLOB, Raw
from emulators.process import wait_for
from emulators.storage import services
from emulators.storage.keys import ACCOUNT, KEY


@contextmanager
def client_of(url: str) -> Iterator[BlobServiceClient]:
    with BlobServiceClient(url, AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as client:
        yield client


def kill(running: services.Services) -> None:
    os.kill(running.pid, signal.SIGKILL)
    running.part.process.wait()


def test_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    """Containers, bytes, metadata, tags, settings, staged blocks, leases and CORS rules survive a kill."""
    with services.start(tmp_path, published_key=True) as running, client_of(running.blob_url) as client:
        container = client.create_container("kept", metadata={"one": "1"})
        blob = container.upload_blob(
            "a/ü", b"x" * 100_000, metadata={"Two": "2"}, tags={"k": "v"},
            content_settings=ContentSettings(content_type="text/plain"),
        )  # fmt: skip
        staged = container.get_blob_client("staged")
        staged.stage_block("b1", b"one")
        log = container.get_blob_client("log")
        log.create_append_blob()
        log.append_block(b"line\n")
        taken = str(log.create_snapshot()["snapshot"])
        lease = log.acquire_lease(-1)
        container.upload_blob("gone", b"1")
        container.delete_blob("gone")
        before = blob.get_blob_properties()
        client.set_service_properties(cors=[CorsRule([PAGE], ["GET"])])
        kill(running)
    with services.start(tmp_path, published_key=True) as running, client_of(running.blob_url) as client:
        container = client.get_container_client("kept")
        assert container.get_container_properties().metadata == {"one": "1"}
        assert [one.name for one in container.list_blobs()] == ["a/ü", "log"]
        blob = container.get_blob_client("a/ü")
        after = blob.get_blob_properties()
        assert (after.etag, after.last_modified, after.metadata) == (before.etag, before.last_modified, {"Two": "2"})
        assert (after.content_settings.content_type, blob.get_blob_tags()) == ("text/plain", {"k": "v"})
        assert blob.download_blob().readall() == b"x" * 100_000
        container.get_blob_client("staged").commit_block_list([BlobBlock("b1")])
        assert container.download_blob("staged").readall() == b"one"
        log = container.get_blob_client("log")
        log.append_block(b"more\n", lease=lease.id)
        assert log.download_blob().readall() == b"line\nmore\n"
        assert container.get_blob_client("log", snapshot=taken).download_blob().readall() == b"line\n"
        assert [rule.allowed_origins for rule in client.get_service_properties()["cors"]] == [PAGE]


def test_a_kill_among_writes(tmp_path: Path) -> None:
    """After a kill, an acknowledged write is complete. Any other write is complete or absent, never partial, and
    never only in a list."""
    data = {f"{number:04}": os.urandom(20_000) for number in range(200)}
    acknowledged: list[str] = []
    with services.start(tmp_path, published_key=True) as running, client_of(running.blob_url) as client:
        container = client.create_container("kept")

        def write() -> None:
            try:
                for name, content in data.items():
                    container.upload_blob(name, content)
                    acknowledged.append(name)
            except AzureError:
                return  # it was killed

        writer = threading.Thread(target=write)
        writer.start()
        wait_for(lambda: len(acknowledged) >= 20, 60, "some blobs to be written")
        kill(running)
        writer.join()
    with services.start(tmp_path, published_key=True) as running, client_of(running.blob_url) as client:
        container = client.get_container_client("kept")
        listed = [blob.name for blob in container.list_blobs()]
        assert listed[: len(acknowledged)] == acknowledged
        assert len(listed) <= len(acknowledged) + 1
        assert all(container.download_blob(name).readall() == data[name] for name in listed)


def test_nothing_is_left_of_what_was_deleted(tmp_path: Path) -> None:
    """The bytes of deleted and overwritten blobs are removed from the disk."""

    def size() -> int:
        return sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())

    with inside.start(tmp_path, published_key=True) as running, client_of(running.urls["blob_url"]) as client:
        container = client.create_container("kept")
        empty = size()
        for number in range(3):
            container.upload_blob(f"{number}", os.urandom(2**20))
            container.upload_blob("same", os.urandom(2**20), overwrite=True)
        assert size() > empty + 3 * 2**20
        client.delete_container("kept")
        wait_for(lambda: size() < empty + 2**20, 60, "the bytes to be gone")


PATHS = ["../../escaped", "/../escaped", "a/../../../escaped", "%2e%2e/%2e%2e/escaped", "..%2f..%2fescaped", "x" * 1024]


def test_names_are_no_paths(tmp_path: Path) -> None:
    """For any blob name, nothing is written outside of the service's own folder."""
    home = tmp_path / "home"
    home.mkdir()
    with inside.start(home, published_key=True) as running, client_of(running.urls["blob_url"]) as client:
        container = client.create_container("kept")
        for name in PATHS:
            Raw(running.urls["blob_url"]).ask("PUT", f"kept/{name}", headers=BLOCK_BLOB, body=b"mine")
        container.upload_blob("after", b"")
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
    assert not list(tmp_path.rglob("*escaped*"))
