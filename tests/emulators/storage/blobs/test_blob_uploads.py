"""Writing block blobs in one request, or as the package cuts them, against Azurite and against ours."""

from __future__ import annotations

import base64
import hashlib
import io
import random
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobServiceClient, ContainerClient, ContentSettings, StandardBlobTier

from tests.azurite import ACCOUNT, KEY
from tests.emulators.storage.conftest import Side
from tests.emulators.storage.raw import BLOCK_BLOB, Raw, refusal

MIB = 2**20


def md5_of(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


@pytest.fixture
def chunked(side: Side, container: ContainerClient) -> Iterator[ContainerClient]:
    """The same container, by a client that cuts what it writes and reads into pieces of 64 KiB."""
    size = 64 * 1024
    with BlobServiceClient(
        side.blob_url,
        AzureNamedKeyCredential(ACCOUNT, KEY),
        retry_total=0,
        max_single_put_size=size,
        max_block_size=size,
        min_large_block_upload_threshold=size,
        max_single_get_size=size,
        max_chunk_get_size=size,
    ) as service:
        yield service.get_container_client(container.container_name)


@pytest.mark.parametrize("size", [0, 1, 5 * MIB])
def test_bytes_come_back(container: ContainerClient, size: int) -> None:
    """What was written is read, with its length and the MD5 that the service made."""
    data = random.Random(size).randbytes(size)
    written = container.upload_blob("a", data)
    downloaded = container.download_blob("a")
    assert downloaded.readall() == data
    assert downloaded.size == size
    properties = written.get_blob_properties()
    assert properties.size == size
    assert properties.content_settings.content_md5 == bytearray(base64.b64decode(md5_of(data)))
    assert properties.blob_type == "BlockBlob"


def test_large_blobs_are_cut(chunked: ContainerClient) -> None:
    """Pieces that are sent and fetched four at a time come together in their order."""
    data = random.Random(1).randbytes(MIB + 7)
    chunked.upload_blob("a", io.BytesIO(data), max_concurrency=4)
    assert chunked.download_blob("a", max_concurrency=4).readall() == data
    committed, uncommitted = chunked.get_blob_client("a").get_block_list("all")
    assert [block.size for block in committed] == [65536] * 16 + [7]
    assert uncommitted == []


def test_a_stream_of_unknown_length(chunked: ContainerClient) -> None:
    """An iterator of pieces is written as blocks."""
    chunked.upload_blob("a", (b"x" * 50_000 for _ in range(4)))
    assert chunked.download_blob("a").readall() == b"x" * 200_000


def test_nothing_is_overwritten_unasked(container: ContainerClient) -> None:
    """With If-None-Match: * a second write is 409 and the first stays; without it the second replaces the first."""
    container.upload_blob("a", b"first")
    assert refusal(container.upload_blob, "a", b"second") == (409, "BlobAlreadyExists")
    assert container.download_blob("a").readall() == b"first"
    container.upload_blob("a", b"third", overwrite=True)
    assert container.download_blob("a").readall() == b"third"


def test_nothing_is_overwritten_by_blocks(chunked: ContainerClient) -> None:
    """A commit of blocks heeds If-None-Match: * too."""
    chunked.upload_blob("a", b"1" * 200_000)
    assert refusal(chunked.upload_blob, "a", b"2" * 200_000) == (409, "BlobAlreadyExists")
    assert chunked.download_blob("a").readall() == b"1" * 200_000


def test_a_new_version_has_a_new_etag(container: ContainerClient) -> None:
    """Also when it says the same."""
    etags = {container.upload_blob("a", b"1", overwrite=True).get_blob_properties().etag for _ in range(3)}
    assert len(etags) == 3


SETTINGS: dict[str, Any] = {
    "content_type": "text/plain; charset=utf-8",
    "content_encoding": "identity",
    "content_language": "de",
    "content_disposition": 'attachment; filename="a.txt"',
    "cache_control": "no-cache",
}


@pytest.mark.parametrize("size", [5, 200_000])
def test_settings_are_kept(chunked: ContainerClient, size: int) -> None:
    """What the writer says about its content, whether in one request or by blocks, is what each reader is told."""
    chunked.upload_blob("a", b"1" * size, content_settings=ContentSettings(**SETTINGS), metadata={"one": "1"})
    properties = chunked.get_blob_client("a").get_blob_properties()
    (listed,) = chunked.list_blobs(include=["metadata"])
    downloaded = chunked.download_blob("a").properties
    for found in (properties, listed, downloaded):
        assert {name: found.content_settings[name] for name in SETTINGS} == SETTINGS
        assert found.metadata == {"one": "1"}


def test_without_settings(container: ContainerClient) -> None:
    """The type is application/octet-stream, and the rest is absent."""
    found = container.upload_blob("a", b"1").get_blob_properties().content_settings
    assert found.content_type == "application/octet-stream"
    assert {found[name] for name in SETTINGS if name != "content_type"} == {None}


def test_a_second_write_replaces_all(container: ContainerClient) -> None:
    """Settings, metadata, tags and tier of the former version are gone."""
    container.upload_blob(
        "a", b"1", content_settings=ContentSettings(**SETTINGS), metadata={"one": "1"}, tags={"k": "v"},
        standard_blob_tier=StandardBlobTier.COOL,
    )  # fmt: skip
    client = container.upload_blob("a", b"22", overwrite=True)
    found = client.get_blob_properties()
    assert (found.metadata, found.tag_count, found.blob_tier) == ({}, None, "Hot")
    assert found.content_settings.content_language is None
    assert client.get_blob_tags() == {}


def test_the_type_of_the_request_is_that_of_the_blob(container: ContainerClient, raw: Raw) -> None:
    """Without x-ms-blob-content-type the Content-Type of the request counts."""
    name = f"{container.container_name}/a"
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, "Content-Type": "text/x-plain"}, body=b"1").status == 201
    assert raw.ask("GET", name).headers["Content-Type"] == "text/x-plain"


def test_the_writer_is_told_what_was_written(container: ContainerClient, raw: Raw) -> None:
    """201 with etag, time and MD5."""
    name = f"{container.container_name}/a"
    reply = raw.ask("PUT", name, headers=BLOCK_BLOB, body=b"hello")
    head = raw.ask("HEAD", name)
    assert (reply.status, reply.body) == (201, b"")
    assert reply.headers["Content-MD5"] == head.headers["Content-MD5"] == md5_of(b"hello")
    assert reply.headers["ETag"] == head.headers["ETag"]
    assert reply.headers["Last-Modified"] == head.headers["Last-Modified"]
    assert reply.headers["ETag"].startswith('"0x')
    assert reply.headers["x-ms-request-server-encrypted"] == "true"


@pytest.mark.parametrize("header", ["Content-MD5", "x-ms-blob-content-md5"])
def test_a_wrong_md5_is_refused(container: ContainerClient, raw: Raw, header: str) -> None:
    """Nothing is written if the bytes are not those that the writer has counted."""
    name = f"{container.container_name}/a"
    reply = raw.ask("PUT", name, headers={**BLOCK_BLOB, header: md5_of(b"other")}, body=b"hello")
    assert reply.refusal == (400, "Md5Mismatch")
    assert raw.ask("GET", name).refusal == (404, "BlobNotFound")
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, header: md5_of(b"hello")}, body=b"hello").status == 201


@pytest.mark.parametrize("value", ["abc", md5_of(b"")[:-4], "?" * 24])
def test_an_md5_is_16_bytes(container: ContainerClient, raw: Raw, value: str) -> None:
    """In base64; anything else is refused."""
    reply = raw.ask("PUT", f"{container.container_name}/a", headers={**BLOCK_BLOB, "Content-MD5": value}, body=b"1")
    assert reply.refusal == (400, "InvalidMd5")


def test_the_package_checks_with_md5(chunked: ContainerClient) -> None:
    """With validate_content each piece carries its MD5, both ways."""
    data = random.Random(2).randbytes(150_000)
    chunked.upload_blob("a", data, validate_content="md5")
    assert chunked.download_blob("a", validate_content="md5").readall() == data


def test_a_crc64_is_checked(container: ContainerClient, raw: Raw) -> None:
    """x-ms-content-crc64 must be that of the bytes."""
    name = f"{container.container_name}/a"
    wrong = {**BLOCK_BLOB, "x-ms-content-crc64": "MDAwMDAwMDA="}
    right = {**BLOCK_BLOB, "x-ms-content-crc64": "V0JSBnCFdzM="}
    assert raw.ask("PUT", name, headers=wrong, body=b"hello").refusal == (400, "Crc64Mismatch")
    assert raw.ask("PUT", name, headers=right, body=b"hello").status == 201


def test_md5_of_blocks_is_the_writers(chunked: ContainerClient) -> None:
    """A blob of blocks has the MD5 that its writer gave, and none without."""
    given = bytearray(hashlib.md5(b"anything", usedforsecurity=False).digest())
    chunked.upload_blob("given", b"1" * 200_000, content_settings=ContentSettings(content_md5=given))
    chunked.upload_blob("none", b"1" * 200_000)
    found = [chunked.get_blob_client(name).get_blob_properties().content_settings for name in ("given", "none")]
    assert [one.content_md5 for one in found] == [given, None]


def test_a_tier_comes_with_the_blob(container: ContainerClient) -> None:
    """Hot by inference, or what the writer asks for."""
    container.upload_blob("hot", b"1")
    container.upload_blob("cool", b"1", standard_blob_tier=StandardBlobTier.COOL)
    found = {blob.name: (blob.blob_tier, blob.blob_tier_inferred) for blob in container.list_blobs()}
    assert found == {"cool": ("Cool", None), "hot": ("Hot", True)}


def test_creation_stays(container: ContainerClient) -> None:
    """The time of creation is that of the first version."""
    first = container.upload_blob("a", b"1").get_blob_properties()
    second = container.upload_blob("a", b"2", overwrite=True).get_blob_properties()
    assert first.creation_time == second.creation_time
    assert second.last_modified >= first.last_modified >= first.creation_time
