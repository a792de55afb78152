"""Leases: only their holder may write to the blob or delete the container."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from azure.storage.blob import BlobClient, BlobLeaseClient, ContainerClient

from emulator_tests.storage.raw import Raw, refusal


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", b"old", metadata={"one": "1"})


def state(client: BlobClient | ContainerClient) -> tuple[str | None, str | None, str | None]:
    properties = client.get_blob_properties() if isinstance(client, BlobClient) else client.get_container_properties()
    lease = properties.lease
    return lease.status, lease.state, lease.duration


def holder(client: BlobClient | ContainerClient, lease_id: str) -> BlobLeaseClient:
    return BlobLeaseClient(client, lease_id)


LEASED = ("locked", "leased", "infinite")
FREE = ("unlocked", "available", None)


@pytest.mark.parametrize("seconds", [0, 14, 61, -2])
def test_a_lease_has_bounds(blob: BlobClient, seconds: int) -> None:
    """A duration outside of the bounds is refused."""
    assert refusal(blob.acquire_lease, seconds)[0] == 400
    assert state(blob) == FREE


def test_nobody_else_writes(container: ContainerClient, blob: BlobClient) -> None:
    """Each write without the lease id, or with another id, is refused. Reading needs no id."""
    other = str(uuid.uuid4())
    lease = blob.acquire_lease(-1)
    writes: list[Callable[..., object]] = [
        lambda **options: blob.upload_blob(b"new", overwrite=True, **options),
        lambda **options: blob.set_blob_metadata({}, **options),
        lambda **options: blob.set_http_headers(**options),
        lambda **options: blob.stage_block("b1", b"1", **options),
        lambda **options: blob.commit_block_list([], **options),
        lambda **options: blob.delete_blob(**options),
    ]
    for write in writes:
        assert refusal(write) == (412, "LeaseIdMissing")
        assert refusal(write, lease=other) == (412, "LeaseIdMismatchWithBlobOperation")
    assert blob.download_blob().readall() == b"old"
    blob.set_blob_metadata({"two": "2"}, lease=lease)
    assert blob.get_blob_properties().metadata == {"two": "2"}
    blob.delete_blob(lease=lease)
    assert list(container.list_blobs()) == []


def test_the_holder_writes_and_holds_on(blob: BlobClient) -> None:
    """A write by the holder keeps the lease."""
    lease = blob.acquire_lease(-1)
    blob.upload_blob(b"new", overwrite=True, lease=lease)
    assert state(blob) == LEASED
    assert blob.download_blob(lease=lease).readall() == b"new"
    lease.release()
    blob.upload_blob(b"newer", overwrite=True)


def test_no_lease_no_id(blob: BlobClient) -> None:
    """A request with a lease id is refused if the blob has no lease, even a read."""
    lease = str(uuid.uuid4())
    expected = (412, "LeaseNotPresentWithBlobOperation")
    assert refusal(blob.upload_blob, b"new", overwrite=True, lease=lease) == expected
    assert refusal(blob.download_blob, lease=lease) == expected


def test_reading_with_another_id(blob: BlobClient) -> None:
    """A read needs no lease id, but a read with a wrong id is refused."""
    lease = blob.acquire_lease(-1)
    assert refusal(blob.download_blob, lease=str(uuid.uuid4())) == (412, "LeaseIdMismatchWithBlobOperation")
    assert blob.download_blob(lease=lease).readall() == b"old"


def test_only_the_holder_renews_and_releases(blob: BlobClient) -> None:
    """Renewing or releasing with another id is a 409. After the release anyone can acquire the lease, and the old
    id is invalid."""
    lease = blob.acquire_lease(-1)
    wrong = holder(blob, str(uuid.uuid4()))
    mismatch = (409, "LeaseIdMismatchWithLeaseOperation")
    assert refusal(wrong.renew) == refusal(wrong.release) == mismatch
    lease.renew()
    mine = holder(blob, lease.id)
    lease.release()
    assert refusal(mine.release) == mismatch
    blob.acquire_lease(-1)


def test_an_id_is_changed(blob: BlobClient) -> None:
    """After a change the old id is invalid. Changing to the current id again is not an error."""
    lease = blob.acquire_lease(-1)
    old, new = lease.id, str(uuid.uuid4())
    lease.change(new)
    assert lease.id == new
    assert refusal(holder(blob, old).renew) == (409, "LeaseIdMismatchWithLeaseOperation")
    holder(blob, old).change(new)
    lease.release()


def test_a_lease_is_broken_at_once(blob: BlobClient) -> None:
    """An infinite lease breaks at once: anyone can write or acquire a lease, and the holder can't renew."""
    lease = blob.acquire_lease(-1)
    assert BlobLeaseClient(blob).break_lease() == 0
    assert state(blob) == ("unlocked", "broken", None)
    assert refusal(lease.renew) == (409, "LeaseIsBrokenAndCannotBeRenewed")
    blob.upload_blob(b"new", overwrite=True)
    blob.acquire_lease(-1)
    assert state(blob) == LEASED


def test_a_lease_is_broken_later(blob: BlobClient) -> None:
    """A broken lease stays locked for the break period, at most for its remaining time. Until then nobody can
    acquire a lease, but the holder may release it."""
    lease = blob.acquire_lease(60)
    assert BlobLeaseClient(blob).break_lease(lease_break_period=30) in (29, 30)
    assert state(blob) == ("locked", "breaking", None)
    assert refusal(blob.acquire_lease, -1) == (409, "LeaseAlreadyPresent")
    assert refusal(blob.acquire_lease, -1, lease_id=lease.id) == (409, "LeaseIsBreakingAndCannotBeAcquired")
    assert refusal(blob.upload_blob, b"new", overwrite=True) == (412, "LeaseIdMissing")
    assert BlobLeaseClient(blob).break_lease(lease_break_period=0) == 0
    assert state(blob)[1] == "broken"
    lease.release()
    assert state(blob) == FREE


def test_nothing_to_break(blob: BlobClient) -> None:
    """Breaking a missing lease is a 409."""
    assert refusal(BlobLeaseClient(blob).break_lease) == (409, "LeaseNotPresentWithLeaseOperation")


def test_leases_heed_conditions(blob: BlobClient, raw: Raw) -> None:
    """Acquiring a lease under an unmet condition is a 412."""
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "If-Match": '"0x1"'}
    reply = raw.ask("PUT", f"{blob.container_name}/a", "comp=lease", headers)
    assert reply.refusal == (412, "ConditionNotMet")
    assert state(blob) == FREE


def test_a_container_is_leased(container: ContainerClient) -> None:
    """Deleting a leased container needs the lease id. Its blobs can be written without it."""
    lease = container.acquire_lease(-1)
    assert state(container) == LEASED
    assert refusal(container.acquire_lease, -1) == (409, "LeaseAlreadyPresent")
    container.upload_blob("a", b"1")
    assert refusal(container.delete_container) == (412, "LeaseIdMissing")
    wrong = str(uuid.uuid4())
    assert refusal(container.delete_container, lease=wrong) == (412, "LeaseIdMismatchWithContainerOperation")
    container.set_container_metadata({"one": "1"}, lease=lease)
    container.delete_container(lease=lease)
    assert not container.exists()
