"""A blob's metadata, settings, tier and tags."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

from emulator_tests.storage.raw import refusal


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", b"hello", metadata={"old": "1"}, tags={"k": "v"})


def test_settings_are_replaced(blob: BlobClient) -> None:
    """New settings replace all old settings and keep the metadata."""
    blob.set_http_headers(ContentSettings(content_type="text/plain", content_language="de"))
    before = blob.get_blob_properties()
    blob.set_http_headers(ContentSettings(content_type="a/b", cache_control="no-cache"))
    after = blob.get_blob_properties()
    found = after.content_settings
    assert (found.content_type, found.content_language, found.cache_control) == ("a/b", None, "no-cache")
    assert after.etag != before.etag
    assert after.metadata == {"old": "1"}


def test_a_tier_is_set(blob: BlobClient) -> None:
    """Setting a tier keeps the etag. A tier that Azure does not have is refused."""
    before = blob.get_blob_properties()
    blob.set_standard_blob_tier("Cool")
    after = blob.get_blob_properties()
    assert (after.blob_tier, bool(after.blob_tier_inferred), after.etag) == ("Cool", False, before.etag)
    blob.set_standard_blob_tier("Archive")
    assert blob.get_blob_properties().blob_tier == "Archive"
    assert refusal(blob.set_standard_blob_tier, "Lukewarm")[0] == 400


def test_an_archived_blob_is_not_overwritten(blob: BlobClient) -> None:
    """An archived blob can be overwritten neither with one request nor with blocks
    (Azure/azure-storage-azcopy#993). After its deletion the name is free."""
    blob.set_standard_blob_tier("Archive")
    for write in (
        lambda: blob.upload_blob(b"new", overwrite=True),
        lambda: blob.stage_block("YQ==", b"new"),
        lambda: blob.commit_block_list([]),
    ):
        assert refusal(write) == (409, "BlobArchived")
    blob.delete_blob()
    blob.upload_blob(b"new")


@pytest.mark.parametrize("tags", [
    {f"key{number}": "v" for number in range(11)},
    {"k" * 129: "v"},
    {"k": "v" * 257},
    {"k": "v&w"},
])  # fmt: skip
def test_tags_have_limits(blob: BlobClient, tags: dict[str, str]) -> None:
    """A blob has at most ten tags, with keys of 128 and values of 256 characters from Azure's set."""
    assert refusal(blob.set_blob_tags, tags)[0] == 400
    assert blob.get_blob_tags() == {"k": "v"}
