"""What Azure documents and Azurite does otherwise: ours alone does as Azure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient

from emulators.storage.azurite import ACCOUNT, KEY
from tests.emulators.storage.conftest import Side
from tests.emulators.storage.raw import BLOCK_BLOB, Raw, refusal

LONGEST = 1024


@pytest.fixture
def container(ours: Side, unique: Callable[[], str]) -> Iterator[ContainerClient]:
    with BlobServiceClient(ours.blob_url, AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as service:
        yield service.create_container(unique())


@pytest.fixture
def raw(ours: Side) -> Raw:
    return Raw(ours.blob_url)


def test_a_name_has_at_most_1024_characters(container: ContainerClient) -> None:
    """One more is refused; Azurite takes it."""
    container.upload_blob("x" * LONGEST, b"1")
    assert refusal(container.upload_blob, "x" * (LONGEST + 1), b"1")[0] == 400
    assert [len(blob.name) for blob in container.list_blobs()] == [LONGEST]


def test_one_put_drops_staged_blocks(container: ContainerClient) -> None:
    """A blob that is written at once has no blocks; Azurite keeps the staged ones."""
    blob = container.get_blob_client("a")
    blob.stage_block("b1", b"1")
    blob.commit_block_list([BlobBlock("b1")])
    blob.stage_block("b2", b"2")
    blob.upload_blob(b"whole", overwrite=True)
    assert blob.get_block_list("all") == ([], [])
    assert refusal(blob.commit_block_list, [BlobBlock("b2")]) == (400, "InvalidBlockList")


def test_what_is_only_staged_cannot_be_deleted(container: ContainerClient) -> None:
    """Before its first commit a blob is not there; Azurite deletes it."""
    blob = container.get_blob_client("a")
    blob.stage_block("b1", b"1")
    assert refusal(blob.delete_blob) == (404, "BlobNotFound")
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == ["b1"]


@pytest.mark.parametrize(("query", "headers", "body"), [
    ("comp=block&blockid=", {}, b"1"),
    ("comp=blocklist", {}, b""),
    ("comp=blocklist", {}, b"nonsense"),
    ("", {}, b"no type"),
    ("", {"x-ms-blob-type": "Odd"}, b"1"),
    ("comp=block", {}, b"no id"),
    ("comp=odd", BLOCK_BLOB, b"1"),
    ("comp=tier", {}, b""),
    ("comp=lease", {"x-ms-lease-action": "odd"}, b""),
])  # fmt: skip
def test_a_broken_request_is_told_why(
    container: ContainerClient, raw: Raw, query: str, headers: dict[str, str], body: bytes
) -> None:
    """400 with a code and a message; Azurite answers some of them with 200, 201 or 500, others without a word."""
    reply = raw.ask("PUT", f"{container.container_name}/a", query, headers, body)
    assert reply.status == 400
    assert reply.code
    assert b"<Message>" in reply.body
    assert list(container.list_blobs(include=["uncommittedblobs"])) == []
