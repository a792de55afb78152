"""Snapshots: a blob as it was, against Azurite and against ours."""

from __future__ import annotations

from typing import Any

from azure.storage.blob import BlobClient, ContainerClient

from tests.emulators.storage.raw import CONTENT, Raw, refusal


def snapshot(blob: BlobClient, **options: Any) -> str:
    return str(blob.create_snapshot(**options)["snapshot"])


def test_a_snapshot_stays(container: ContainerClient, blob: BlobClient) -> None:
    """It has the bytes and metadata of its moment, whatever becomes of the blob."""
    taken = snapshot(blob)
    blob.upload_blob(b"new", overwrite=True, metadata={"two": "2"})
    old = container.get_blob_client("a", snapshot=taken)
    assert (old.download_blob().readall(), blob.download_blob().readall()) == (CONTENT, b"new")
    assert old.get_blob_properties().metadata == {"one": "1"}
    assert old.get_blob_properties().snapshot == taken
    missing = container.get_blob_client("a", snapshot="2020-01-01T00:00:00.0000000Z")
    assert refusal(missing.download_blob) == (404, "BlobNotFound")


def test_snapshots_are_listed(container: ContainerClient, blob: BlobClient) -> None:
    """On request, beside the blob itself."""
    times = [snapshot(blob) for _ in range(3)]
    assert len(set(times)) == 3
    assert {one.snapshot for one in container.list_blobs(include=["snapshots"])} == {*times, None}
    assert [one.snapshot for one in container.list_blobs()] == [None]


def test_a_snapshot_may_have_metadata_of_its_own(container: ContainerClient, blob: BlobClient) -> None:
    """Instead of the blob's."""
    taken = snapshot(blob, metadata={"mine": "1"})
    old = container.get_blob_client("a", snapshot=taken)
    assert old.get_blob_properties().metadata == {"mine": "1"}
    assert blob.get_blob_properties().metadata == {"one": "1"}


def test_deleting_with_snapshots(container: ContainerClient, blob: BlobClient) -> None:
    """A blob with snapshots goes only with them; they may go alone, all or one."""
    first, second = (snapshot(blob) for _ in range(2))
    assert refusal(blob.delete_blob) == (409, "SnapshotsPresent")
    container.get_blob_client("a", snapshot=first).delete_blob()
    assert [one.snapshot for one in container.list_blobs(include=["snapshots"])].count(second) == 1
    blob.delete_blob(delete_snapshots="only")
    assert [one.snapshot for one in container.list_blobs(include=["snapshots"])] == [None]
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    assert list(container.list_blobs(include=["snapshots"])) == []


def test_a_snapshot_is_not_written(raw: Raw, name: str, blob: BlobClient) -> None:
    """Whoever names one in a write does not change it."""
    taken = snapshot(blob)
    raw.ask("PUT", name, f"snapshot={taken}", {"x-ms-blob-type": "BlockBlob"}, b"new")
    assert raw.ask("GET", name, f"snapshot={taken}").body == CONTENT


def test_a_snapshot_is_read_in_parts(container: ContainerClient, blob: BlobClient) -> None:
    """As any blob."""
    old = container.get_blob_client("a", snapshot=snapshot(blob))
    blob.upload_blob(b"x", overwrite=True)
    assert old.download_blob(offset=2, length=3).readall() == b"234"


def test_a_snapshot_may_be_copied(container: ContainerClient, blob: BlobClient) -> None:
    """Onto its own blob too, which brings the old version back."""
    taken = snapshot(blob)
    blob.upload_blob(b"new", overwrite=True)
    blob.start_copy_from_url(f"{blob.url}?snapshot={taken}")
    assert blob.download_blob().readall() == CONTENT


def test_a_snapshot_heeds_conditions(blob: BlobClient, raw: Raw, name: str) -> None:
    """It is taken only of the version that its taker knows."""
    assert raw.ask("PUT", name, "comp=snapshot", {"If-Match": '"0x1"'}).refusal == (412, "ConditionNotMet")
    etag = blob.get_blob_properties().etag
    reply = raw.ask("PUT", name, "comp=snapshot", {"If-Match": etag})
    assert (reply.status, reply.headers["ETag"]) == (201, etag)
    assert reply.headers["x-ms-snapshot"].endswith("Z")
    assert raw.ask("PUT", f"{name}-missing", "comp=snapshot").refusal == (404, "BlobNotFound")


def test_a_deleted_container_has_no_snapshots(container: ContainerClient, blob: BlobClient) -> None:
    """They go with it."""
    old = container.get_blob_client("a", snapshot=snapshot(blob))
    container.delete_container()
    assert refusal(old.download_blob) == (404, "ContainerNotFound")
