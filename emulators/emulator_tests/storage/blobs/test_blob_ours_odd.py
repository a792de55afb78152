"""Requests that our blob service once answered wrongly: with a 500, or without the required permission."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    generate_blob_sas,
    generate_container_sas,
)

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas, refusal
from emulators.storage.blobs.access import BlobAccount
from emulators.storage.blobs.service import BlobService
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.server import served
from emulators.storage.keys import ACCOUNT, KEY

SIGNED: dict[str, Any] = {"permission": "rwl", "expiry": datetime.now(UTC) + timedelta(hours=1)}


@pytest.fixture
def service(ours: Side) -> Iterator[BlobServiceClient]:
    with BlobServiceClient(ours.blob_url, AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as client:
        yield client


@pytest.fixture
def container(service: BlobServiceClient, unique: Callable[[], str]) -> ContainerClient:
    made = service.create_container(unique())
    made.upload_blob("a", b"hello")
    return made


@pytest.fixture
def raw(ours: Side) -> Raw:
    return Raw(ours.blob_url)


@pytest.mark.parametrize("body", [gzip.compress(b"hello", mtime=0), b"not gzip"], ids=["packed", "not"])
def test_an_encoded_body_stays_as_it_is(container: ContainerClient, raw: Raw, body: bytes) -> None:
    """Content-Encoding only describes the bytes, and the service does not decode them."""
    path = f"{container.container_name}/packed"
    assert raw.ask("PUT", path, headers={**BLOCK_BLOB, "Content-Encoding": "gzip"}, body=body).status == 201
    assert raw.ask("GET", path).body == body


@pytest.mark.parametrize("header", ["x-ms-blob-content-type", "x-ms-blob-content-language", "x-ms-copy-source"])
def test_a_header_that_is_no_text(container: ContainerClient, raw: Raw, header: str) -> None:
    """A header that is not valid text is refused, because it would break the journal and every list."""
    value: Any = b"http://127.0.0.1/\xff"
    reply = raw.ask("PUT", f"{container.container_name}/new", headers={**BLOCK_BLOB, header: value}, body=b"1")
    assert reply.refusal == (400, "InvalidHeaderValue")
    assert [blob.name for blob in container.list_blobs()] == ["a"]


@pytest.mark.parametrize("body", [
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e "v">]><Tags><TagSet/></Tags>'.encode("utf-16"),
    b'<?xml version="1.0" encoding="latin-1"?><Tags><TagSet>\xe9</TagSet></Tags>',
    b"<Other/>",
])  # fmt: skip
@pytest.mark.parametrize("query", ["comp=tags", "comp=blocklist"])
def test_a_document_in_another_encoding(container: ContainerClient, raw: Raw, query: str, body: bytes) -> None:
    """Only UTF-8 is accepted, so that another encoding can't hide an entity."""
    reply = raw.ask("PUT", f"{container.container_name}/a", query, body=body)
    assert reply.refusal == (400, "InvalidXmlDocument")


def test_a_lists_parameters_are_told_as_xml(container: ContainerClient, raw: Raw) -> None:
    """The list's parameters are valid XML, even with characters that XML can't contain."""
    query = "restype=container&comp=list&prefix=%01&delimiter=%0b"
    reply = raw.ask("GET", container.container_name, query)
    assert (reply.status, b"<Prefix>?</Prefix>" in reply.body) == (200, True)


@pytest.mark.parametrize("target", ["//[x", "/devstoreaccount1/{container}?restype=container"])
def test_a_part_of_a_batch_deletes_no_container(container: ContainerClient, raw: Raw, target: str) -> None:
    """A part of a batch that would delete a container, or has an invalid address, is refused."""
    inner = f"DELETE {target.format(container=container.container_name)}&{account_sas()} HTTP/1.1\r\n\r\n"
    part = f"--x\r\nContent-Type: application/http\r\n\r\n{inner}\r\n--x--\r\n"
    reply = raw.ask("POST", "", "comp=batch", {"Content-Type": "multipart/mixed; boundary=x"}, part.encode())
    assert reply.status == 400 or b"HTTP/1.1 400" in reply.body
    assert container.exists()


@pytest.mark.parametrize(("source", "status"), [
    ("http://[::1/devstoreaccount1/x/a", 400),
    ("http://elsewhere.test/devstoreaccount1/{container}/a", 404),
    ("http://127.0.0.1:1/devstoreaccount1/{container}/a", 404),
])  # fmt: skip
def test_a_source_is_of_this_account(container: ContainerClient, raw: Raw, source: str, status: int) -> None:
    """A source with the same path on another host or port is not a blob of this account."""
    headers = {"x-ms-copy-source": source.format(container=container.container_name)}
    assert raw.ask("PUT", f"{container.container_name}/b", headers=headers).status == status


def test_the_longest_name_of_all(container: ContainerClient) -> None:
    """A name of 1,024 four-byte characters works, though it takes 12 KiB in an address and in a copy's header."""
    name = "🚂" * 1024
    blob = container.upload_blob(name, b"1")
    container.get_blob_client(name[:-1]).start_copy_from_url(blob.url)
    assert [one.name for one in container.list_blobs(name_starts_with="🚂")] == [name[:-1], name]


def test_metadata_comes_once(container: ContainerClient, raw: Raw) -> None:
    """Metadata names that differ only in case are refused, and metadata is at most 8 KiB."""
    path = f"{container.container_name}/b"
    twice = raw.ask("PUT", path, headers={**BLOCK_BLOB, "x-ms-meta-a": "1", "x-ms-meta-A": "2"})
    much = raw.ask("PUT", path, headers={**BLOCK_BLOB, "x-ms-meta-a": "1" * 5000, "x-ms-meta-b": "2" * 5000})
    assert (twice.refusal, much.refusal) == ((400, "InvalidMetadata"), (400, "InvalidMetadata"))


def test_a_signature_for_a_container_is_none_for_the_root(
    service: BlobServiceClient, container: ContainerClient, raw: Raw
) -> None:
    """A blob directly under the account is in $root. A container's signature does not cover it, even if blob and
    container have the same name."""
    name = container.container_name
    root = service.get_container_client("$root")
    if not root.exists():
        root.create_container()
    root.upload_blob(name, b"in the root")
    sas = generate_container_sas(ACCOUNT, name, account_key=KEY, **SIGNED)
    assert raw.ask("GET", f"{name}/a", sas, signed=False).body == b"hello"
    assert raw.ask("GET", name, sas, signed=False).refusal == (403, "AuthenticationFailed")
    of_root = generate_container_sas(ACCOUNT, "$root", account_key=KEY, **SIGNED)
    assert raw.ask("GET", name, of_root, signed=False).body == b"in the root"
    assert raw.ask("GET", f"{name}/a", of_root, signed=False).status == 403


def test_a_signature_for_a_target_opens_no_other_source(container: ContainerClient, raw: Raw) -> None:
    """A container's signature covers only the blobs inside, and a blob's signature only the blob."""
    name = container.container_name
    headers = {"x-ms-copy-source": f"{raw.url}/{name}/a"}
    of_blob = generate_blob_sas(ACCOUNT, name, "b", account_key=KEY, **SIGNED)
    of_all = generate_container_sas(ACCOUNT, name, account_key=KEY, **SIGNED)
    refused = raw.ask("PUT", f"{name}/b", of_blob, headers, signed=False)
    assert refused.refusal == (403, "CannotVerifyCopySource")
    assert raw.ask("PUT", f"{name}/b", of_all, headers, signed=False).status == 202


def test_a_signature_for_a_snapshot(container: ContainerClient, raw: Raw) -> None:
    """The signature covers only this snapshot, neither the blob nor another snapshot."""
    blob, name = container.get_blob_client("a"), container.container_name
    first, second = (str(blob.create_snapshot()["snapshot"]) for _ in range(2))
    sas = generate_blob_sas(ACCOUNT, name, "a", snapshot=first, account_key=KEY, **SIGNED)
    sas = "&".join(part for part in sas.split("&") if not part.startswith("snapshot="))
    assert raw.ask("GET", f"{name}/a", f"snapshot={first}&{sas}", signed=False).body == b"hello"
    assert raw.ask("GET", f"{name}/a", f"snapshot={second}&{sas}", signed=False).status == 403
    assert raw.ask("GET", f"{name}/a", sas, signed=False).status == 403


@pytest.mark.parametrize("query", ["", "comp=metadata", "comp=block&blockid=YQ==", "comp=lease"])
def test_a_snapshot_is_refused_to_writers(container: ContainerClient, raw: Raw, query: str) -> None:
    """Writing to a snapshot is refused with a message, and does not change the blob."""
    taken = container.get_blob_client("a").create_snapshot()["snapshot"]
    headers = {**BLOCK_BLOB, "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    reply = raw.ask("PUT", f"{container.container_name}/a", f"snapshot={taken}&{query}", headers)
    assert reply.refusal == (400, "InvalidQueryParameterValue")
    assert raw.ask("GET", f"{container.container_name}/a").body == b"hello"


def test_snapshots_have_pages(container: ContainerClient) -> None:
    """A list with pages of one entry has each snapshot once, and each blob after its snapshots."""
    blob = container.get_blob_client("a")
    times = [blob.create_snapshot()["snapshot"] for _ in range(3)]
    container.upload_blob("b", b"")
    pages = container.list_blobs(include=["snapshots"], results_per_page=1).by_page()
    listed = [(one.name, one.snapshot) for page in pages for one in page]
    assert listed == [*(("a", time) for time in times), ("a", None), ("b", None)]


def test_a_deletion_says_what_of_the_snapshots(container: ContainerClient, raw: Raw) -> None:
    """x-ms-delete-snapshots must be a known value, and is refused for a single snapshot."""
    taken = container.get_blob_client("a").create_snapshot()["snapshot"]
    path, which = f"{container.container_name}/a", {"x-ms-delete-snapshots": "include"}
    assert raw.ask("DELETE", path, headers={"x-ms-delete-snapshots": "odd"}).status == 400
    assert raw.ask("DELETE", path, f"snapshot={taken}", which).status == 400
    missing = container.get_blob_client("a", snapshot="2020-01-01T00:00:00.0000000Z")
    assert refusal(missing.delete_blob) == (404, "BlobNotFound")


def test_the_log_has_no_signatures(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a malformed request and an interrupted upload, the log has neither the address nor a traceback."""
    with caplog.at_level(logging.INFO):
        asyncio.run(_odd_clients(tmp_path))
    assert "BadHttpMessage" in caplog.text or "InvalidURLError" in caplog.text
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text


async def _odd_clients(home: Path) -> None:
    blobs = Blobs(home / "blobs.sqlite", home / "blobs")
    container = blobs.create_container("logs", {}).id
    async with served(BlobService(blobs, BlobAccount(ACCOUNT, KEY, "blob")), "127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /devstoreaccount1/c/\xff?sig=secret HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.0 400")
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        path = f"/devstoreaccount1/logs/a?{account_sas()}&x=secret"
        head = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 9000000\r\n\r\n"
        writer.write(head.encode() + b"x" * 300_000)
        await writer.drain()
        async with asyncio.timeout(60):
            while not list(home.glob("blobs/*/*")):
                await asyncio.sleep(0.01)
            writer.close()
            while list(home.glob("blobs/*/*")):  # until a purge removes partial content
                await asyncio.sleep(0.05)
    assert blobs.find(container, "a") is None
    blobs.close()


def test_what_azurites_tests_found(ours: Side, container: ContainerClient, raw: Raw) -> None:
    """The parts of `include` are case-insensitive. A HEAD has the headers that its signature sets. Setting headers
    without a content type removes the old type. A copy's source keeps its snapshot."""
    name = container.container_name
    settings = ContentSettings(content_type="text/plain")
    blob = container.upload_blob("a", b"x", overwrite=True, content_settings=settings)
    assert raw.ask("GET", name, "restype=container&comp=list&include=Snapshots,Metadata").status == 200
    end = datetime.now(UTC) + timedelta(hours=1)
    may = BlobSasPermissions(read=True)
    sas = generate_blob_sas(ACCOUNT, name, "a", account_key=KEY, permission=may, expiry=end, cache_control="no-store")
    assert raw.ask("HEAD", f"{name}/a", sas, signed=False).headers["Cache-Control"] == "no-store"
    blob.set_http_headers(ContentSettings(cache_control="no-cache"))
    assert not raw.ask("HEAD", f"{name}/a").headers["Content-Type"]
    source = f"{blob.url}?snapshot={quote(str(blob.create_snapshot()['snapshot']))}"
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(f"{source}&{account_sas()}")
    assert copy.get_blob_properties().copy.source == source
    facts = raw.ask("GET", "", "restype=account&comp=properties").headers
    assert (facts["x-ms-sku-name"], facts["x-ms-is-hns-enabled"]) == ("Standard_RAGRS", "false")
