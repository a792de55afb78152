"""Soft delete: deleted and overwritten blobs can be restored during the policy's retention."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient, RetentionPolicy

from emulator_tests.storage import inside
from emulators.storage.blobs.extents import Upload
from emulators.storage.blobs.listing import Wanted
from emulators.storage.blobs.model import Blob
from emulators.storage.blobs.store import Blobs

DAY = 24 * 3600.0


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobServiceClient]:
    with (
        inside.start(tmp_path_factory.mktemp("deleted"), published_key=True) as running,
        BlobServiceClient.from_connection_string(running.connection_string) as blobs,
    ):
        blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))
        yield blobs


@pytest.fixture
def box(account: BlobServiceClient, request: pytest.FixtureRequest) -> ContainerClient:
    return account.create_container(f"box-{abs(hash(request.node.name))}")


def listed(box: ContainerClient) -> list[tuple[str, bool, bool]]:
    """Return each listed name, whether it is a snapshot, and whether it is deleted."""
    found = box.list_blobs(include=["snapshots", "deleted"])
    return [(one.name, bool(one.snapshot), bool(one.deleted)) for one in found]


def test_a_deleted_blob_comes_back(box: ContainerClient) -> None:
    """A deleted blob is restored with metadata, tags and snapshots. A list has it only with `include=deleted`."""
    blob = box.upload_blob("a", b"one", metadata={"k": "v"}, tags={"t": "1"})
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    with pytest.raises(ResourceNotFoundError):
        blob.get_blob_properties()
    assert list(box.list_blobs(include=["snapshots"])) == []
    assert listed(box) == [("a", True, True), ("a", False, True)]
    (shown,) = box.list_blobs(include=["deleted"])
    assert (shown.deleted_time is not None, shown.remaining_retention_days) == (True, 1)
    blob.undelete_blob()
    assert listed(box) == [("a", True, False), ("a", False, False)]
    assert blob.download_blob().readall() == b"one"
    assert (blob.get_blob_properties().metadata, blob.get_blob_tags()) == ({"k": "v"}, {"t": "1"})


def test_what_was_overwritten_comes_back_as_a_snapshot(box: ContainerClient) -> None:
    """An overwritten blob is also kept, and is restored as a snapshot. The current content is unchanged."""
    blob = box.upload_blob("a", b"one")
    blob.upload_blob(b"two", overwrite=True)
    assert listed(box) == [("a", True, True), ("a", False, False)]
    blob.undelete_blob()
    snapshot = next(one.snapshot for one in box.list_blobs(include=["snapshots"]) if one.snapshot)
    assert box.get_blob_client("a", snapshot=snapshot).download_blob().readall() == b"one"
    assert blob.download_blob().readall() == b"two"


def test_a_name_that_was_used_again(box: ContainerClient) -> None:
    """If the name is in use again, the deleted blob is restored as a snapshot of the new blob."""
    blob = box.upload_blob("a", b"one")
    blob.delete_blob()
    blob.upload_blob(b"two")
    blob.undelete_blob()
    assert listed(box) == [("a", True, False), ("a", False, False)]
    assert blob.download_blob().readall() == b"two"


def test_what_never_was_there(box: ContainerClient) -> None:
    """Restoring a missing blob is a 404, and restoring an existing blob changes nothing."""
    with pytest.raises(ResourceNotFoundError):
        box.get_blob_client("missing").undelete_blob()
    box.upload_blob("a", b"one").undelete_blob()
    assert listed(box) == [("a", False, False)]


def test_without_a_policy_deleted_is_deleted(account: BlobServiceClient, box: ContainerClient) -> None:
    """The policy can be switched off while the service runs, and then deleting is final."""
    account.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))
    try:
        box.upload_blob("a", b"one").delete_blob()
        assert listed(box) == []
    finally:
        account.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))


def test_after_its_days_a_blob_is_gone(tmp_path: Path) -> None:
    """After the retention the blob's row and bytes are removed. Deleting a container removes its deleted blobs at
    once."""
    now = [0.0]
    store = Blobs(tmp_path / "blobs.sqlite", tmp_path / "blobs", lambda: now[0])
    store.history.retention_days = 2
    box, other = store.create_container("box", {}), store.create_container("other", {})
    for container in (box, other):
        store.write(container.id, "a", Blob("BlockBlob"), Upload(3, b"", b"one"))
        store.delete(container.id, "a")
    store.delete_container(other)
    while store.purge():
        pass
    wanted = Wanted("", "", ("", ""), 9, deleted=True)
    assert [name for name, _ in store.listed(box.id, wanted)] == ["a"]
    now[0] = 2 * DAY
    store.purge()
    assert store.listed(box.id, wanted) == []
    assert not store.undelete(box.id, "a")
    assert not store.undelete(other.id, "a")
    store.close()


def test_a_deleted_version_stays_for_its_days(tmp_path: Path) -> None:
    """With versions, a deleted version can be listed and restored until the retention ends. A deleted blob becomes a
    version, which stays, as in Azure."""
    now = [1.0]
    store = Blobs(tmp_path / "blobs.sqlite", tmp_path / "blobs", lambda: now[0], versioning=True)
    store.history.retention_days = 2
    box = store.create_container("box", {}).id
    first, second = store.new_version(), store.new_version()
    store.write(box, "a", Blob("BlockBlob", version=first), Upload(3, b"", b"one"))
    store.write(box, "a", Blob("BlockBlob", version=second), Upload(3, b"", b"two"), keeps=True)

    def versions(deleted: bool) -> list[tuple[str, bool]]:
        found = store.listed(box, Wanted("", "", ("", ""), 9, snapshots=True, versions=True, deleted=deleted))
        return [(blob.version, blob.deleted > 0) for _, blob in found if blob]

    store.delete_version(box, "a", first)
    assert (versions(False), versions(True)) == ([(second, False)], [(first, True), (second, False)])
    assert store.undelete(box, "a")
    assert versions(True) == [(first, False), (second, False)]
    store.delete_version(box, "a", first)
    store.delete(box, "a", keeps=True)
    now[0] += 2 * DAY
    while store.purge():
        pass
    assert versions(True) == [(second, False)]
    assert store.find(box, "a", version=first) is None
    store.close()
