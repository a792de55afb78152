"""Append blobs: blocks are added at the end, under conditions."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

from emulator_tests.storage.raw import BLOCK_BLOB, Raw

APPEND_BLOB = {"x-ms-blob-type": "AppendBlob"}


@pytest.fixture
def log(container: ContainerClient) -> BlobClient:
    client = container.get_blob_client("log")
    client.create_append_blob(content_settings=ContentSettings(content_type="text/plain"), metadata={"one": "1"})
    return client


def test_types_do_not_mix(container: ContainerClient, log: BlobClient, raw: Raw) -> None:
    """A block blob refuses appended blocks, and an append blob refuses staged blocks."""
    container.upload_blob("block", b"1")
    block, name = f"{container.container_name}/block", f"{container.container_name}/log"
    wrong = (409, "InvalidBlobType")
    assert raw.ask("PUT", block, "comp=appendblock", body=b"1").refusal == wrong
    assert raw.ask("PUT", name, "comp=block&blockid=AAAA", body=b"1").refusal == wrong
    assert raw.ask("PUT", name, "comp=blocklist", body=b"<BlockList></BlockList>").refusal == wrong
    assert raw.ask("GET", name, "comp=blocklist").refusal == wrong
    assert raw.ask("PUT", f"{container.container_name}/none", "comp=appendblock", body=b"1").refusal == (
        404,
        "BlobNotFound",
    )


def test_one_put_makes_it_another_type(log: BlobClient, raw: Raw) -> None:
    """A put of a block blob replaces an existing blob of any type."""
    log.append_block(b"one")
    assert raw.ask("PUT", f"{log.container_name}/log", headers=BLOCK_BLOB, body=b"whole").status == 201
    assert (log.get_blob_properties().blob_type, log.download_blob().readall()) == ("BlockBlob", b"whole")


def test_it_is_made_empty(container: ContainerClient, raw: Raw) -> None:
    """A new append blob is empty. Its MD5 may be that of what will be appended."""
    reply = raw.ask("PUT", f"{container.container_name}/log", headers=APPEND_BLOB, body=b"bytes")
    assert reply.status == 400
    assert list(container.list_blobs()) == []
    meant = {**APPEND_BLOB, "x-ms-blob-content-md5": base64.b64encode(b"0" * 16).decode()}
    assert raw.ask("PUT", f"{container.container_name}/log", headers=meant).status == 201


def test_a_piece_has_bytes_and_its_md5(log: BlobClient, raw: Raw) -> None:
    """An empty block, or a block with a wrong MD5, is refused and adds nothing."""
    name = f"{log.container_name}/log"
    wrong = {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
    assert raw.ask("PUT", name, "comp=appendblock", wrong, b"1").refusal == (400, "Md5Mismatch")
    assert raw.ask("PUT", name, "comp=appendblock").status == 400
    assert log.get_blob_properties().append_blob_committed_block_count == 0


def test_writers_at_once_lose_nothing(log: BlobClient) -> None:
    """Blocks of parallel writers follow each other, each complete."""
    pieces = [f"{number:04}\n".encode() for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(log.append_block, pieces))
    content = log.download_blob().readall()
    assert sorted(content.splitlines(keepends=True)) == pieces
    assert [content[int(str(answer["blob_append_offset"])) :][:5] for answer in answers] == pieces
