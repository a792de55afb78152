"""Copies within the account, against Azurite and against ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    generate_blob_sas,
)

from tests.azurite import ACCOUNT, KEY
from tests.emulators.storage.raw import Raw, refusal


@pytest.fixture
def source(container: ContainerClient) -> BlobClient:
    settings = ContentSettings(content_type="text/plain", content_language="de")
    return container.upload_blob("source", b"hello", metadata={"one": "1"}, content_settings=settings)


@pytest.fixture
def target(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("target")


def signed(blob: BlobClient, permission: str = "r") -> str:
    sas = generate_blob_sas(
        ACCOUNT,
        blob.container_name,
        blob.blob_name,
        account_key=KEY,
        permission=BlobSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return f"{blob.url}?{sas}"


def test_a_copy_is_done_at_once(source: BlobClient, target: BlobClient, raw: Raw) -> None:
    """202 with an id and `success`; the copy has bytes, settings and metadata of its source."""
    path = f"{target.container_name}/{target.blob_name}"
    reply = raw.ask("PUT", path, headers={"x-ms-copy-source": signed(source)})
    assert (reply.status, reply.headers["x-ms-copy-status"]) == (202, "success")
    found = target.get_blob_properties()
    assert target.download_blob().readall() == b"hello"
    assert (found.metadata, found.content_settings.content_type, found.content_settings.content_language) == (
        {"one": "1"}, "text/plain", "de",
    )  # fmt: skip
    assert (found.copy.id, found.copy.status) == (reply.headers["x-ms-copy-id"], "success")
    assert str(found.copy.source).partition("?")[0] == source.url
    assert (found.copy.progress, found.etag) == ("5/5", reply.headers["ETag"])
    assert found.copy.completion_time is not None
    assert found.etag != source.get_blob_properties().etag


def test_the_package_copies(source: BlobClient, target: BlobClient) -> None:
    """And takes other metadata instead of the source's."""
    answer = target.start_copy_from_url(source.url, metadata={"two": "2"})
    assert answer["copy_status"] == "success"
    assert target.get_blob_properties().metadata == {"two": "2"}
    assert source.get_blob_properties().metadata == {"one": "1"}


def test_a_copy_is_its_own(source: BlobClient, target: BlobClient) -> None:
    """What happens to the source after that changes nothing of it."""
    target.start_copy_from_url(source.url)
    source.upload_blob(b"changed", overwrite=True)
    assert target.download_blob().readall() == b"hello"
    source.delete_blob()
    assert target.download_blob().readall() == b"hello"


def test_a_copy_replaces(source: BlobClient, target: BlobClient) -> None:
    """What was there is gone, but not if the writer forbids it."""
    target.upload_blob(b"old", metadata={"old": "1"})
    target.start_copy_from_url(source.url)
    assert (target.download_blob().readall(), target.get_blob_properties().metadata) == (b"hello", {"one": "1"})


def test_a_writer_ends_what_the_copy_said(source: BlobClient, target: BlobClient) -> None:
    """A new version of the copy is no copy."""
    target.start_copy_from_url(source.url)
    target.upload_blob(b"new", overwrite=True)
    assert target.get_blob_properties().copy.id is None


def test_copies_of_blocks_and_pieces(container: ContainerClient, target: BlobClient) -> None:
    """Of a blob of blocks, and of an append blob, which stays one."""
    made = container.get_blob_client("made")
    made.stage_block("b1", b"one")
    made.stage_block("b2", b"two")
    made.commit_block_list([BlobBlock("b2"), BlobBlock("b1")])
    target.start_copy_from_url(made.url)
    assert target.download_blob().readall() == b"twoone"
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(b"line")
    other = container.get_blob_client("other")
    other.start_copy_from_url(log.url)
    assert (other.download_blob().readall(), other.get_blob_properties().blob_type) == (b"line", "AppendBlob")


def test_from_another_container(blobs: BlobServiceClient, container: ContainerClient, source: BlobClient) -> None:
    """And under any name."""
    other = blobs.create_container(f"{container.container_name}-2")
    copy = other.get_blob_client("a b/ü%.txt")
    copy.start_copy_from_url(source.url)
    assert copy.download_blob().readall() == b"hello"
    back = container.get_blob_client("back")
    back.start_copy_from_url(copy.url)
    assert back.download_blob().readall() == b"hello"


def test_onto_itself(source: BlobClient) -> None:
    """It stays, with new metadata if there is any."""
    before = source.get_blob_properties().etag
    source.start_copy_from_url(source.url, metadata={"two": "2"})
    after = source.get_blob_properties()
    assert (after.metadata, source.download_blob().readall()) == ({"two": "2"}, b"hello")
    assert after.etag != before


def test_of_what_is_not_there(container: ContainerClient, source: BlobClient, target: BlobClient) -> None:
    """404, and nothing is written."""
    assert refusal(target.start_copy_from_url, f"{source.url}-missing")[0] == 404
    missing = source.url.replace(container.container_name, "missing-container")
    assert refusal(target.start_copy_from_url, missing)[0] == 404
    assert not target.exists()


@pytest.mark.parametrize("address", ["nonsense", "", "/relative/path", "ftp://127.0.0.1/a/b"])
def test_of_no_address(container: ContainerClient, raw: Raw, address: str) -> None:
    """What is not the address of a blob is refused."""
    reply = raw.ask("PUT", f"{container.container_name}/target", headers={"x-ms-copy-source": address})
    assert reply.status in (400, 404)
    assert list(container.list_blobs()) == []


def test_a_signed_source(source: BlobClient, target: BlobClient) -> None:
    """A source's signature may stand in its address."""
    target.start_copy_from_url(signed(source))
    assert target.download_blob().readall() == b"hello"


def test_conditions_of_the_source(source: BlobClient, target: BlobClient, raw: Raw) -> None:
    """The source must be as the copier knows it."""
    path, etag = f"{target.container_name}/{target.blob_name}", source.get_blob_properties().etag
    headers = {"x-ms-copy-source": signed(source)}
    assert raw.ask("PUT", path, headers={**headers, "x-ms-source-if-match": '"0x1"'}).status == 412
    assert not target.exists()
    assert raw.ask("PUT", path, headers={**headers, "x-ms-source-if-match": etag}).status == 202
    assert raw.ask("PUT", path, headers={**headers, "x-ms-source-if-none-match": '"0x1"'}).status == 202


def test_conditions_of_the_target(source: BlobClient, target: BlobClient, raw: Raw) -> None:
    """And so must the target."""
    path = f"{target.container_name}/{target.blob_name}"
    headers = {"x-ms-copy-source": signed(source)}
    assert raw.ask("PUT", path, headers={**headers, "If-Match": '"0x1"'}).refusal == (412, "ConditionNotMet")
    assert raw.ask("PUT", path, headers={**headers, "If-None-Match": "*"}).status == 202
    assert raw.ask("PUT", path, headers={**headers, "If-None-Match": "*"}).refusal == (409, "BlobAlreadyExists")


def test_a_leased_target(source: BlobClient, target: BlobClient) -> None:
    """Only its holder copies onto it."""
    target.upload_blob(b"old")
    lease = target.acquire_lease(-1)
    assert refusal(target.start_copy_from_url, source.url) == (412, "LeaseIdMissing")
    target.start_copy_from_url(source.url, destination_lease=lease)
    assert target.download_blob().readall() == b"hello"


def test_nothing_is_left_to_abort(source: BlobClient, target: BlobClient) -> None:
    """A copy that is done is not aborted."""
    copy_id = str(target.start_copy_from_url(source.url)["copy_id"])
    assert refusal(target.abort_copy, copy_id) == (409, "NoPendingCopyOperation")


def test_in_the_same_request(source: BlobClient, target: BlobClient) -> None:
    """With x-ms-requires-sync, which needs a signed source, the copy is there when the answer comes."""
    answer = target.start_copy_from_url(signed(source), requires_sync=True)
    assert answer["copy_status"] == "success"
    assert target.download_blob().readall() == b"hello"
    assert target.get_blob_properties().metadata == {"one": "1"}
