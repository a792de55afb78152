"""Containers of blobs, against Azurite and against ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.storage.blob import AccessPolicy, BlobServiceClient, ContainerClient, ContainerSasPermissions

from tests.emulators.storage.raw import Raw, refusal


def test_a_container_is_made_once(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """A second creation is 409; a deleted container is not there."""
    client = blobs.get_container_client(unique())
    assert not client.exists()
    made = client.create_container()
    assert client.exists()
    assert made["etag"]
    assert made["last_modified"] == client.get_container_properties().last_modified
    assert refusal(client.create_container) == (409, "ContainerAlreadyExists")
    client.delete_container()
    assert not client.exists()
    for call in (client.delete_container, client.get_container_properties, client.get_container_access_policy):
        assert refusal(call) == (404, "ContainerNotFound")
    assert refusal(lambda: list(client.list_blobs())) == (404, "ContainerNotFound")
    assert refusal(client.upload_blob, "a", b"") == (404, "ContainerNotFound")
    assert refusal(client.get_blob_client("a").download_blob) == (404, "ContainerNotFound")
    assert refusal(client.get_blob_client("a").get_blob_properties) == (404, "ContainerNotFound")
    assert refusal(client.get_blob_client("a").delete_blob) == (404, "ContainerNotFound")


def test_a_new_container_of_an_old_name_is_empty(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """Blobs, blocks and metadata of a deleted container never come back."""
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
    ("a" * 64, "OutOfRangeInput"),
    ("Upper", "InvalidResourceName"),
    ("a--b", "InvalidResourceName"),
    ("-ab", "InvalidResourceName"),
    ("ab-", "InvalidResourceName"),
    ("a_b", "InvalidResourceName"),
])  # fmt: skip
def test_names_have_rules(blobs: BlobServiceClient, name: str, code: str) -> None:
    """3 to 63 lower-case letters, digits and single hyphens between them."""
    assert refusal(blobs.create_container, name) == (400, code)


@pytest.mark.parametrize("name", ["$root", "$logs"])
def test_names_that_azure_keeps(blobs: BlobServiceClient, name: str) -> None:
    """The names that begin with a dollar are those of Azure's own containers; they can be made here."""
    client = blobs.create_container(name)
    client.upload_blob("a", b"1")
    assert [blob.name for blob in client.list_blobs()] == ["a"]
    client.delete_container()


def test_metadata_is_replaced(container: ContainerClient) -> None:
    """What is set is read back, replaces what was there, and changes the etag."""
    before = container.get_container_properties()
    container.set_container_metadata({"one": "1", "two": "two words"})
    after = container.get_container_properties()
    assert after.metadata == {"one": "1", "two": "two words"}
    assert after.etag != before.etag
    container.set_container_metadata({})
    assert container.get_container_properties().metadata == {}


def test_a_new_container_has_these_properties(container: ContainerClient) -> None:
    """It is not leased, closed to the public, and has neither holds nor policies."""
    found = container.get_container_properties()
    assert found.name == container.container_name
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("unlocked", "available", None)
    assert found.public_access is None
    assert (found.has_immutability_policy, found.has_legal_hold) == (False, False)


def test_a_blob_changes_nothing_of_its_container(container: ContainerClient) -> None:
    """Writing a blob leaves the container's etag and time as they were."""
    before = container.get_container_properties()
    container.upload_blob("a", b"1")
    after = container.get_container_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_containers_are_listed(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """By prefix, in order, page by page, with their metadata on request."""
    prefix = unique()
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in reversed(names):
        blobs.create_container(name, metadata={"number": name[-1]})
    pages = blobs.list_containers(prefix, include_metadata=True, results_per_page=2).by_page()
    found = [[(one.name, one.metadata) for one in page] for page in pages]
    assert [len(page) for page in found] == [2, 2, 1]
    assert [one for page in found for one in page] == [(name, {"number": name[-1]}) for name in names]
    assert [one.metadata for one in blobs.list_containers(prefix)] == [None] * 5
    assert list(blobs.list_containers(f"{prefix}-9")) == []


def test_a_listed_container_is_as_it_says_itself(blobs: BlobServiceClient, container: ContainerClient) -> None:
    """Etag, time and lease are the same in the list."""
    own = container.get_container_properties()
    (listed,) = blobs.list_containers(container.container_name)
    assert (listed.etag.strip('"'), listed.last_modified) == (own.etag.strip('"'), own.last_modified)
    assert (listed.lease.status, listed.lease.state) == ("unlocked", "available")


def test_a_listing_goes_on_from_its_marker(blobs: BlobServiceClient, unique: Callable[[], str]) -> None:
    """The marker is all that the next page needs, also after what it named was deleted."""
    prefix = unique()
    for number in range(4):
        blobs.create_container(f"{prefix}-{number}")
    pages = blobs.list_containers(prefix, results_per_page=2).by_page()
    first = [one.name for one in next(pages)]
    blobs.delete_container(f"{prefix}-2")
    later = blobs.list_containers(prefix, results_per_page=2).by_page(pages.continuation_token)  # type: ignore[attr-defined]
    assert first == [f"{prefix}-0", f"{prefix}-1"]
    assert [one.name for page in later for one in page] == [f"{prefix}-3"]


def test_nobody_is_let_in_without_a_signature(container: ContainerClient, raw: Raw) -> None:
    """Without public access an unsigned request reads, lists and writes nothing."""
    container.upload_blob("a", b"1")
    name = container.container_name
    replies = [
        raw.ask("GET", f"{name}/a", signed=False),
        raw.ask("GET", name, "restype=container&comp=list", signed=False),
        raw.ask("PUT", f"{name}/b", headers={"x-ms-blob-type": "BlockBlob"}, body=b"1", signed=False),
        raw.ask("DELETE", f"{name}/a", signed=False),
    ]
    assert all(reply.status in (401, 403, 404) for reply in replies)
    assert [blob.name for blob in container.list_blobs()] == ["a"]


def test_deleting_heeds_conditions(container: ContainerClient) -> None:
    """A container that was changed since is not deleted by who asks for that."""
    old = container.get_container_properties()
    container.set_container_metadata({"a": "1"})
    long_ago = old.last_modified.replace(year=2001)
    assert refusal(container.delete_container, if_unmodified_since=long_ago) == (412, "ConditionNotMet")
    container.delete_container(if_modified_since=long_ago)
    assert not container.exists()


def test_access_policies_are_kept(container: ContainerClient) -> None:
    """None at first; what is set replaces all that was there."""
    assert container.get_container_access_policy()["signed_identifiers"] == []
    policy = AccessPolicy(ContainerSasPermissions(read=True), "2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z")
    container.set_container_access_policy({"one": policy})
    (found,) = container.get_container_access_policy()["signed_identifiers"]
    assert (found.id, found.access_policy.permission) == ("one", "r")
    container.set_container_access_policy({})
    assert container.get_container_access_policy()["signed_identifiers"] == []
