"""Writing block blobs with one request or in the package's blocks."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from azure.storage.blob import ContainerClient, ContentSettings, StandardBlobTier

from emulator_tests.storage.raw import BLOCK_BLOB, Raw


def md5_of(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


SETTINGS: dict[str, Any] = {
    "content_type": "text/plain; charset=utf-8",
    "content_encoding": "identity",
    "content_language": "de",
    "content_disposition": 'attachment; filename="a.txt"',
    "cache_control": "no-cache",
}


def test_a_second_write_replaces_all(container: ContainerClient) -> None:
    """A second write removes the settings, metadata, tags and tier of the first."""
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
    """Without x-ms-blob-content-type the blob's type is the request's Content-Type."""
    name = f"{container.container_name}/a"
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, "Content-Type": "text/x-plain"}, body=b"1").status == 201
    assert raw.ask("GET", name).headers["Content-Type"] == "text/x-plain"


@pytest.mark.parametrize("header", ["Content-MD5", "x-ms-blob-content-md5"])
def test_a_wrong_md5_is_refused(container: ContainerClient, raw: Raw, header: str) -> None:
    """Bytes that do not match the given checksum are refused, and nothing is written."""
    name = f"{container.container_name}/a"
    reply = raw.ask("PUT", name, headers={**BLOCK_BLOB, header: md5_of(b"other")}, body=b"hello")
    assert reply.refusal == (400, "Md5Mismatch")
    assert raw.ask("GET", name).refusal == (404, "BlobNotFound")
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, header: md5_of(b"hello")}, body=b"hello").status == 201


@pytest.mark.parametrize("value", ["abc", md5_of(b"")[:-4], "?" * 24])
def test_an_md5_is_16_bytes(container: ContainerClient, raw: Raw, value: str) -> None:
    """An MD5 must be 16 bytes in base64."""
    reply = raw.ask("PUT", f"{container.container_name}/a", headers={**BLOCK_BLOB, "Content-MD5": value}, body=b"1")
    assert reply.refusal == (400, "InvalidMd5")


def test_a_crc64_is_checked(container: ContainerClient, raw: Raw) -> None:
    """x-ms-content-crc64 must match the bytes."""
    name = f"{container.container_name}/a"
    wrong = {**BLOCK_BLOB, "x-ms-content-crc64": "MDAwMDAwMDA="}
    right = {**BLOCK_BLOB, "x-ms-content-crc64": "V0JSBnCFdzM="}
    assert raw.ask("PUT", name, headers=wrong, body=b"hello").refusal == (400, "Crc64Mismatch")
    assert raw.ask("PUT", name, headers=right, body=b"hello").status == 201


def test_creation_stays(container: ContainerClient) -> None:
    """The creation time is that of the first version."""
    first = container.upload_blob("a", b"1").get_blob_properties()
    second = container.upload_blob("a", b"2", overwrite=True).get_blob_properties()
    assert first.creation_time == second.creation_time
    assert second.last_modified >= first.last_modified >= first.creation_time


@pytest.mark.parametrize("given", ["AAAA", "AAAAAAAAAAAAAAAA", "no base64!"])
def test_a_crc64_has_eight_bytes(container: ContainerClient, raw: Raw, given: str) -> None:
    """A CRC-64 of any other length is a client error, whatever the content."""
    for query, headers in (("", BLOCK_BLOB), ("comp=block&blockid=AAAA", {})):
        name = f"{container.container_name}/a"
        reply = raw.ask("PUT", name, query, {**headers, "x-ms-content-crc64": given}, b"12345678")
        assert reply.refusal == (400, "InvalidHeaderValue")


def test_a_crc64_is_told(container: ContainerClient, raw: Raw) -> None:
    """Put Block and Append Block return the content's CRC-64, even if the client sent no hash."""
    name = f"{container.container_name}/a"
    raw.ask("PUT", name, headers={"x-ms-blob-type": "AppendBlob"})
    for query, blob in (("comp=block&blockid=AAAA", f"{name}b"), ("comp=appendblock", name)):
        assert raw.ask("PUT", blob, query, body=b"hello").headers["x-ms-content-crc64"] == "V0JSBnCFdzM="
