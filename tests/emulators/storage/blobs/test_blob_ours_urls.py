"""Blobs and blocks that are written from an address: ours alone, as Azurite answers 500."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobBlock, BlobClient, BlobServiceClient, ContainerClient, ContentSettings

from tests.azurite import ACCOUNT, KEY
from tests.emulators.storage.conftest import Side
from tests.emulators.storage.raw import account_sas, refusal


@pytest.fixture
def container(ours: Side, unique: Callable[[], str]) -> Iterator[ContainerClient]:
    with BlobServiceClient(ours.blob_url, AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as service:
        yield service.create_container(unique())


@pytest.fixture
def source(container: ContainerClient) -> BlobClient:
    settings = ContentSettings(content_type="text/plain")
    return container.upload_blob("source", b"0123456789", metadata={"one": "1"}, content_settings=settings)


def signed(blob: BlobClient) -> str:
    return f"{blob.url}?{account_sas('r')}"


def test_a_blob_from_an_address(container: ContainerClient, source: BlobClient) -> None:
    """The bytes are those of the source, and so is the type."""
    target = container.get_blob_client("target")
    target.upload_blob_from_url(signed(source))
    found = target.get_blob_properties()
    assert target.download_blob().readall() == b"0123456789"
    assert found.content_settings.content_type == "text/plain"


def test_a_blob_from_an_address_heeds_what_is_there(container: ContainerClient, source: BlobClient) -> None:
    """It is not overwritten unasked."""
    target = container.upload_blob("target", b"old")
    assert refusal(target.upload_blob_from_url, signed(source)) == (409, "BlobAlreadyExists")
    assert target.download_blob().readall() == b"old"
    target.upload_blob_from_url(signed(source), overwrite=True)
    assert target.download_blob().readall() == b"0123456789"


def test_blocks_from_an_address(container: ContainerClient, source: BlobClient) -> None:
    """Whole, or a range of the source."""
    target = container.get_blob_client("target")
    target.stage_block_from_url("b1", signed(source))
    target.stage_block_from_url("b2", signed(source), source_offset=2, source_length=3)
    target.commit_block_list([BlobBlock("b2"), BlobBlock("b1")])
    assert target.download_blob().readall() == b"2340123456789"


def test_what_is_not_there(container: ContainerClient, source: BlobClient) -> None:
    """A missing source, or one without a right to it, writes nothing."""
    target = container.get_blob_client("target")
    missing = signed(container.get_blob_client("missing"))
    assert refusal(target.upload_blob_from_url, missing)[0] == 404
    assert refusal(target.stage_block_from_url, "b1", missing)[0] == 404
    assert refusal(target.upload_blob_from_url, source.url.replace("source", "missing"))[0] in (401, 403, 404)
    assert [blob.name for blob in container.list_blobs(include=["uncommittedblobs"])] == ["source"]
