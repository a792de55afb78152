"""Copies within the account."""

from __future__ import annotations

import pytest
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
)

from emulator_tests.storage.raw import Raw, refusal


@pytest.fixture
def source(container: ContainerClient) -> BlobClient:
    settings = ContentSettings(content_type="text/plain", content_language="de")
    return container.upload_blob("source", b"hello", metadata={"one": "1"}, content_settings=settings)


@pytest.fixture
def target(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("target")


def test_the_package_copies(source: BlobClient, target: BlobClient) -> None:
    """New metadata replaces the source's metadata in the copy."""
    answer = target.start_copy_from_url(source.url, metadata={"two": "2"})
    assert answer["copy_status"] == "success"
    assert target.get_blob_properties().metadata == {"two": "2"}
    assert source.get_blob_properties().metadata == {"one": "1"}


def test_a_writer_ends_what_the_copy_said(source: BlobClient, target: BlobClient) -> None:
    """After a write to a copy, the blob no longer has copy properties."""
    target.start_copy_from_url(source.url)
    target.upload_blob(b"new", overwrite=True)
    assert target.get_blob_properties().copy.id is None


def test_copies_of_blocks_and_pieces(container: ContainerClient, target: BlobClient) -> None:
    """The copy of a block blob has its bytes, and the copy of an append blob is an append blob."""
    made = container.get_blob_client("made")
    made.stage_block("b1", b"one")
    made.stage_block("b2", b"two")
    made.commit_block_list([BlobBlock("b2"), BlobBlock("b1")])
    target.start_copy_from_url(made.url)
    assert target.download_blob().readall() == b"twoone"
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(b"line")
    other = container.get_blob_client("other")
    other.start_copy_from_url(log.url)
    assert (other.download_blob().readall(), other.get_blob_properties().blob_type) == (b"line", "AppendBlob")


def test_from_another_container(blobs: BlobServiceClient, container: ContainerClient, source: BlobClient) -> None:
    """A blob can be copied between containers, under any name."""
    other = blobs.create_container(f"{container.container_name}-2")
    copy = other.get_blob_client("a b/ü%.txt")
    copy.start_copy_from_url(source.url)
    assert copy.download_blob().readall() == b"hello"
    back = container.get_blob_client("back")
    back.start_copy_from_url(copy.url)
    assert back.download_blob().readall() == b"hello"


def test_onto_itself(source: BlobClient) -> None:
    """A copy onto itself keeps the content and sets the new metadata."""
    before = source.get_blob_properties().etag
    source.start_copy_from_url(source.url, metadata={"two": "2"})
    after = source.get_blob_properties()
    assert (after.metadata, source.download_blob().readall()) == ({"two": "2"}, b"hello")
    assert after.etag != before


def test_of_what_is_not_there(container: ContainerClient, source: BlobClient, target: BlobClient) -> None:
    """Copying a missing blob is a 404, and nothing is written."""
    assert refusal(target.start_copy_from_url, f"{source.url}-missing")[0] == 404
    missing = source.url.replace(container.container_name, "missing-container")
    assert refusal(target.start_copy_from_url, missing)[0] == 404
    assert not target.exists()


@pytest.mark.parametrize("address", ["nonsense", "", "/relative/path", "ftp://127.0.0.1/a/b"])
def test_of_no_address(container: ContainerClient, raw: Raw, address: str) -> None:
    """A source that is not the address of a blob is refused."""
    reply = raw.ask("PUT", f"{container.container_name}/target", headers={"x-ms-copy-source": address})
    assert reply.status in (400, 404)
    assert list(container.list_blobs()) == []
