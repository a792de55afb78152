"""Containers of blobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from emulator_tests.storage.raw import refusal


def test_a_new_container_of_an_old_name_is_empty(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """Blobs, blocks and metadata of a deleted container do not reappear in a new container of its name."""
    client = blobs.create_container(unique(), metadata={"a": "1"})
    client.upload_blob("old", b"old")
    client.get_blob_client("staged").stage_block("AAAA", b"x")
    client.delete_container()
    client.create_container()
    assert list(client.list_blobs(include=["uncommittedblobs"])) == []
    assert client.get_container_properties().metadata == {}
    assert refusal(client.download_blob, "old") == (404, "BlobNotFound")


@pytest.mark.parametrize(("name", "code"), [
    ("ab", "OutOfRangeInput"),
    ("-".join("a" * 33), "OutOfRangeInput"),
    ("a" * 64, "OutOfRangeInput"),
    ("Upper", "InvalidResourceName"),
    ("a--b", "InvalidResourceName"),
    ("-ab", "InvalidResourceName"),
    ("ab-", "InvalidResourceName"),
    ("a_b", "InvalidResourceName"),
])  # fmt: skip
def test_names_have_rules(blobs: BlobServiceClient, name: str, code: str) -> None:
    """A name has 3 to 63 lower-case letters, digits and single hyphens between them."""
    assert refusal(blobs.create_container, name) == (400, code)


@pytest.mark.parametrize("name", ["$root", "$logs"])
def test_names_that_azure_keeps(blobs: BlobServiceClient, name: str) -> None:
    """Names with a leading dollar belong to Azure's own containers. They can be created here."""
    client = blobs.create_container(name)
    client.upload_blob("a", b"1")
    assert [blob.name for blob in client.list_blobs()] == ["a"]
    client.delete_container()


def test_a_blob_changes_nothing_of_its_container(container: ContainerClient) -> None:
    """Writing a blob does not change the container's etag and time."""
    before = container.get_container_properties()
    container.upload_blob("a", b"1")
    after = container.get_container_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_a_listing_goes_on_from_its_marker(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """The next page needs only the marker, even if the marker's blob has been deleted."""
    prefix = unique()
    for number in range(4):
        blobs.create_container(f"{prefix}-{number}")
    pages = blobs.list_containers(prefix, results_per_page=2).by_page()
    first = [one.name for one in next(pages)]
    blobs.delete_container(f"{prefix}-2")
    later = blobs.list_containers(prefix, results_per_page=2).by_page(pages.continuation_token)  # type: ignore[attr-defined]
    assert first == [f"{prefix}-0", f"{prefix}-1"]
    assert [one.name for page in later for one in page] == [f"{prefix}-3"]
