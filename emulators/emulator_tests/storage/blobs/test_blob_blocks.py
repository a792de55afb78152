"""Block blobs: staging and committing blocks."""

from __future__ import annotations

import base64

import pytest
from azure.storage.blob import BlobClient, ContainerClient

from emulator_tests.storage.raw import Raw, escaped, refusal


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("a")


def stage(blob: BlobClient, **blocks: bytes) -> None:
    for name, data in blocks.items():
        blob.stage_block(name, data)


def names_of(blob: BlobClient) -> tuple[list[str], list[str]]:
    """Return the ids of the committed blocks in their order, and of the uncommitted blocks, sorted."""
    committed, uncommitted = blob.get_block_list("all")
    return [block.id for block in committed], sorted(block.id for block in uncommitted)


def test_a_reader_sees_no_staged_block(blob: BlobClient) -> None:
    """Staging changes neither bytes nor etag of the existing blob."""
    blob.upload_blob(b"old")
    before = blob.get_blob_properties()
    stage(blob, b1=b"new")
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified, after.size) == (before.etag, before.last_modified, 3)
    assert blob.download_blob().readall() == b"old"
    assert names_of(blob) == ([], ["b1"])


def test_ids_of_a_blob_are_of_one_length(blob: BlobClient) -> None:
    """While a blob has staged blocks, a block id of another length is refused, also if base64 pads both to one
    length."""
    stage(blob, b1=b"1")
    assert refusal(blob.stage_block, "longer", b"1") == (400, "InvalidBlobOrBlock")
    assert refusal(blob.stage_block, "b12", b"1") == (400, "InvalidBlobOrBlock")
    assert names_of(blob) == ([], ["b1"])


@pytest.mark.parametrize(("query", "status"), [
    ("comp=block&blockid=" + escaped(base64.b64encode(b"x" * 64).decode()), 201),
    ("comp=block&blockid=" + escaped(base64.b64encode(b"x" * 65).decode()), 400),
    ("comp=block&blockid=%21%21", 400),
    ("comp=block&blockid=AAA", 400),
    ("comp=block", 400),
])  # fmt: skip
def test_ids_are_base64_of_64_bytes_at_most(container: ContainerClient, raw: Raw, query: str, status: int) -> None:
    """Any other block id is refused, and nothing is staged."""
    reply = raw.ask("PUT", f"{container.container_name}/a", query, body=b"1")
    assert reply.status == status
    assert len(list(container.list_blobs(include=["uncommittedblobs"]))) == (status == 201)
