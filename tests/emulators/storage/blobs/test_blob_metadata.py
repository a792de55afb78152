"""What is said about a blob beside its bytes: metadata, settings, tier and tags, against Azurite and against ours."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

from tests.emulators.storage.raw import BLOCK_BLOB, Raw, refusal


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", b"hello", metadata={"old": "1"}, tags={"k": "v"})


def test_metadata_is_replaced(blob: BlobClient) -> None:
    """All of it; etag and time change, bytes and settings stay."""
    before = blob.get_blob_properties()
    answer = blob.set_blob_metadata({"new": "2", "empty_not": " two words "})
    after = blob.get_blob_properties()
    assert after.metadata == {"new": "2", "empty_not": "two words"}
    assert after.etag == answer["etag"] != before.etag
    assert after.content_settings.content_md5 == before.content_settings.content_md5
    assert blob.download_blob().readall() == b"hello"
    blob.set_blob_metadata({})
    assert blob.get_blob_properties().metadata == {}


def test_names_of_metadata_keep_their_case(container: ContainerClient, raw: Raw) -> None:
    """As they were written, so they are read and listed."""
    name = f"{container.container_name}/a"
    raw.ask("PUT", name, headers={**BLOCK_BLOB, "x-ms-meta-MixedCase": "Value"}, body=b"1")
    reply = raw.ask("HEAD", name)
    assert "x-ms-meta-MixedCase" in reply.headers.keys()  # noqa: SIM118 (`in headers` would find any case)
    (listed,) = container.list_blobs(include=["metadata"])
    assert listed.metadata == {"MixedCase": "Value"}


def test_settings_are_replaced(blob: BlobClient) -> None:
    """All of them: what is not given again is gone; the metadata stays."""
    blob.set_http_headers(ContentSettings(content_type="text/plain", content_language="de"))
    before = blob.get_blob_properties()
    blob.set_http_headers(ContentSettings(content_type="a/b", cache_control="no-cache"))
    after = blob.get_blob_properties()
    found = after.content_settings
    assert (found.content_type, found.content_language, found.cache_control) == ("a/b", None, "no-cache")
    assert after.etag != before.etag
    assert after.metadata == {"old": "1"}


def test_a_tier_is_set(blob: BlobClient) -> None:
    """The etag stays; another tier than Azure's is refused."""
    before = blob.get_blob_properties()
    blob.set_standard_blob_tier("Cool")
    after = blob.get_blob_properties()
    assert (after.blob_tier, bool(after.blob_tier_inferred), after.etag) == ("Cool", False, before.etag)
    blob.set_standard_blob_tier("Archive")
    assert blob.get_blob_properties().blob_tier == "Archive"
    assert refusal(blob.set_standard_blob_tier, "Lukewarm")[0] == 400


def test_tags_are_replaced(blob: BlobClient) -> None:
    """All of them; the etag stays, and their number is told."""
    before = blob.get_blob_properties()
    assert before.tag_count == 1
    blob.set_blob_tags({"one": "1", "two words": "a/b+c=d:e"})
    after = blob.get_blob_properties()
    assert blob.get_blob_tags() == {"one": "1", "two words": "a/b+c=d:e"}
    assert (after.tag_count, after.etag, after.metadata) == (2, before.etag, before.metadata)
    blob.set_blob_tags()
    assert blob.get_blob_tags() == {}


@pytest.mark.parametrize("tags", [
    {f"key{number}": "v" for number in range(11)},
    {"k" * 129: "v"},
    {"k": "v" * 257},
    {"k": "v&w"},
])  # fmt: skip
def test_tags_have_limits(blob: BlobClient, tags: dict[str, str]) -> None:
    """Ten of them; 128 characters for a key and 256 for a value, of Azure's set."""
    assert refusal(blob.set_blob_tags, tags)[0] == 400
    assert blob.get_blob_tags() == {"k": "v"}


def test_tags_are_listed(container: ContainerClient, blob: BlobClient) -> None:
    """On request."""
    (listed,) = container.list_blobs(include=["tags"])
    assert (listed.name, listed.tags) == ("a", {"k": "v"})
    (bare,) = container.list_blobs()
    assert not bare.tags


def test_what_is_not_there_has_nothing(container: ContainerClient) -> None:
    """Each of these is 404 for a blob that is not there."""
    missing = container.get_blob_client("missing")
    for call in (
        missing.get_blob_properties, missing.get_blob_tags, missing.set_blob_metadata, missing.set_blob_tags,
        missing.set_http_headers, missing.delete_blob, missing.download_blob,
    ):  # fmt: skip
        assert refusal(call) == (404, "BlobNotFound")
    assert refusal(missing.set_standard_blob_tier, "Hot") == (404, "BlobNotFound")
    assert not missing.exists()
