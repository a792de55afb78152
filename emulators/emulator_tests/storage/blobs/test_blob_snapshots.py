"""Snapshots: earlier states of a blob."""

from __future__ import annotations

from typing import Any

from azure.storage.blob import BlobClient, ContainerClient

from emulator_tests.storage.raw import CONTENT


def snapshot(blob: BlobClient, **options: Any) -> str:
    return str(blob.create_snapshot(**options)["snapshot"])


def test_a_snapshot_may_have_metadata_of_its_own(container: ContainerClient, blob: BlobClient) -> None:
    """Metadata in the request replaces the blob's metadata in the snapshot."""
    taken = snapshot(blob, metadata={"mine": "1"})
    old = container.get_blob_client("a", snapshot=taken)
    assert old.get_blob_properties().metadata == {"mine": "1"}
    assert blob.get_blob_properties().metadata == {"one": "1"}


def test_a_snapshot_may_be_copied(container: ContainerClient, blob: BlobClient) -> None:
    """A snapshot can be copied, also onto its own blob to restore it."""
    taken = snapshot(blob)
    blob.upload_blob(b"new", overwrite=True)
    blob.start_copy_from_url(f"{blob.url}?snapshot={taken}")
    assert blob.download_blob().readall() == CONTENT
