"""Copies from other accounts, and from any web server if the configuration allows it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobSasPermissions, BlobServiceClient, ContainerClient, generate_blob_sas

from emulator_tests.storage import inside
from emulator_tests.storage.conftest import Side
from emulators.storage.keys import ACCOUNT, KEY

LONG = bytes(range(256)) * 1024  # does not fit into a row


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/long":
            self.send_response(302 if self.path == "/moved" else 404)
            self.send_header("Location", "/long")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("x-ms-meta-from", "here")
        self.send_header("Content-Length", str(len(LONG)))
        self.end_headers()
        self.wfile.write(LONG)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerClient]:
    with (
        inside.start(tmp_path_factory.mktemp("web"), published_key=True, web_sources=True) as running,
        BlobServiceClient.from_connection_string(running.connection_string, retry_total=0) as blobs,
    ):
        yield blobs.create_container("box")


def test_a_copy_of_a_web_page(box: ContainerClient, site: str) -> None:
    """Every kind of copy takes the page's bytes, type and metadata."""
    blob, block = box.get_blob_client("a"), box.get_blob_client("blocks")
    assert blob.start_copy_from_url(f"{site}/long")["copy_status"] == "success"
    properties = blob.get_blob_properties()
    assert (properties.content_settings.content_type, properties.metadata) == ("text/plain", {"from": "here"})
    block.stage_block_from_url("MQ==", f"{site}/long", source_content_md5=bytearray(hashlib.md5(LONG).digest()))
    block.commit_block_list([BlobBlock("MQ==")])
    log = box.get_blob_client("log")
    log.create_append_blob()
    log.append_block_from_url(f"{site}/long")
    box.get_blob_client("put").upload_blob_from_url(f"{site}/long")
    for name in ("a", "blocks", "log", "put"):
        assert box.download_blob(name).readall() == LONG


def test_a_copy_of_another_account(box: ContainerClient, ours: Side) -> None:
    """A blob of another account can be copied with that account's signature, and a range of it can be a block."""
    end = datetime.now(UTC) + timedelta(hours=1)
    with BlobServiceClient.from_connection_string(ours.connection_string) as others:
        source = others.create_container("web-sources").upload_blob("a", b"0123456789", metadata={"k": "v"})
    sas = generate_blob_sas(
        ACCOUNT, "web-sources", "a", account_key=KEY, permission=BlobSasPermissions(read=True), expiry=end
    )
    block = box.get_blob_client("part")
    block.stage_block_from_url("MQ==", f"{source.url}?{sas}", source_offset=2, source_length=3)
    block.commit_block_list([BlobBlock("MQ==")])
    assert block.download_blob().readall() == b"234"
    whole = box.get_blob_client("whole")
    whole.start_copy_from_url(f"{source.url}?{sas}")
    assert whole.get_blob_properties().metadata == {"k": "v"}
    assert "sig" not in str(whole.get_blob_properties().copy.source)


@pytest.mark.parametrize(("path", "status"), [("missing", 404), ("moved", 400)])
def test_a_source_that_refuses(box: ContainerClient, site: str, path: str, status: int) -> None:
    """The copy fails with the source's status, and redirections are not followed."""
    with pytest.raises(HttpResponseError, match="CannotVerifyCopySource") as caught:
        box.get_blob_client("none").start_copy_from_url(f"{site}/{path}")
    assert caught.value.status_code == status
    assert not box.get_blob_client("none").exists()


def test_a_source_that_is_not_there(box: ContainerClient) -> None:
    """A copy fails if no server listens at the source's address."""
    with pytest.raises(HttpResponseError, match="CannotVerifyCopySource"):
        box.get_blob_client("none").start_copy_from_url("http://127.0.0.1:1/a")
    assert not box.get_blob_client("none").exists()
