"""Searches by tags, and conditions on tags."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

TAGS = {"kind": "run", "day": "2026-01-02"}


def found(client: BlobServiceClient | ContainerClient, where: str, **options: int) -> list[tuple[str, str]]:
    pages = client.find_blobs_by_tags(where, **options)
    return [(str(blob.container_name), str(blob.name)) for blob in pages]


@pytest.fixture
def key(container: ContainerClient) -> str:
    """A tag key that no other test uses."""
    return f"k{container.container_name}"


def test_blobs_are_found_by_their_tags(blobs: BlobServiceClient, container: ContainerClient, key: str) -> None:
    """Blobs are found by one tag, by several tags and by ranges, in all containers or in a named container."""
    other = blobs.create_container(f"{container.container_name}-2")
    here, there = container.container_name, other.container_name
    for client, name, value in ((container, "a", "1"), (container, "b", "2"), (other, "c", "2")):
        client.upload_blob(name, b"", tags={key: value, **TAGS})
    container.upload_blob("without", b"")
    assert sorted(found(blobs, f"\"{key}\" = '2'")) == sorted([(here, "b"), (there, "c")])
    assert found(blobs, f"\"{key}\" = '2' AND \"kind\" = 'run' AND @container = '{here}'") == [(here, "b")]
    assert found(blobs, f"\"{key}\" >= '1' AND \"{key}\" < '2'") == [(here, "a")]
    assert found(blobs, f"\"{key}\" = '1' AND \"day\" > '2026-02'") == []
    assert found(container, f"\"{key}\" = '2'") == [(here, "b")]


def test_a_search_knows_of_every_change(blobs: BlobServiceClient, container: ContainerClient, key: str) -> None:
    """A search reflects new tags, new content, a copy and a deletion."""
    where, here = f"\"{key}\" = '1'", container.container_name
    blob = container.upload_blob("a", b"", tags={key: "1"})
    assert found(blobs, where) == [(here, "a")]
    blob.set_blob_tags({key: "2"})
    assert found(blobs, where) == []
    blob.set_blob_tags({key: "1"})
    blob.set_blob_metadata({"other": "1"})
    assert found(blobs, where) == [(here, "a")]
    blob.upload_blob(b"new", overwrite=True)
    assert found(blobs, where) == []
    blob.upload_blob(b"newer", overwrite=True, tags={key: "1"})
    blob.delete_blob()
    assert found(blobs, where) == []


def test_a_search_has_pages(container: ContainerClient, key: str) -> None:
    """A search has pages with markers, and finds each blob once."""
    names = [f"n{number}" for number in range(5)]
    for name in names:
        container.upload_blob(name, b"", tags={key: "1"})
    pages = container.find_blobs_by_tags(f"\"{key}\" = '1'", results_per_page=2).by_page()
    assert [[blob.name for blob in page] for page in pages] == [names[:2], names[2:4], names[4:]]
