"""Rules that Azure documents and Azurite breaks: only our service follows them."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from azure.core.credentials import AzureSasCredential
from azure.storage.blob import BlobBlock, ContainerClient

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas, refusal

LONGEST = 1024


@pytest.fixture
def side(ours: Side) -> Side:
    """Our service alone, because Azurite differs here."""
    return ours


def test_a_name_has_at_most_1024_characters(container: ContainerClient) -> None:
    """A longer name is refused. Azurite accepts it."""
    container.upload_blob("x" * LONGEST, b"1")
    assert refusal(container.upload_blob, "x" * (LONGEST + 1), b"1")[0] == 400
    assert [len(blob.name) for blob in container.list_blobs()] == [LONGEST]


def test_one_put_drops_staged_blocks(container: ContainerClient) -> None:
    """Writing a blob with one request drops its staged blocks. Azurite keeps them."""
    blob = container.get_blob_client("a")
    blob.stage_block("b1", b"1")
    blob.commit_block_list([BlobBlock("b1")])
    blob.stage_block("b2", b"2")
    blob.upload_blob(b"whole", overwrite=True)
    assert blob.get_block_list("all") == ([], [])
    assert refusal(blob.commit_block_list, [BlobBlock("b2")]) == (400, "InvalidBlockList")


def test_what_is_only_staged_cannot_be_deleted(container: ContainerClient) -> None:
    """Before its first commit a blob does not exist, so deleting it is refused. Azurite deletes it."""
    blob = container.get_blob_client("a")
    blob.stage_block("b1", b"1")
    assert refusal(blob.delete_blob) == (404, "BlobNotFound")
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == ["b1"]


@pytest.mark.parametrize(("query", "headers", "body"), [
    ("comp=block&blockid=", {}, b"1"),
    ("comp=blocklist", {}, b""),
    ("comp=blocklist", {}, b"nonsense"),
    ("", {}, b"no type"),
    ("", {"x-ms-blob-type": "Odd"}, b"1"),
    ("comp=block", {}, b"no id"),
    ("comp=odd", BLOCK_BLOB, b"1"),
    ("comp=tier", {}, b""),
    ("comp=lease", {"x-ms-lease-action": "odd"}, b""),
])  # fmt: skip
def test_a_broken_request_is_told_why(
    container: ContainerClient, raw: Raw, query: str, headers: dict[str, str], body: bytes
) -> None:
    """A malformed request is a 400 with a code and a message. Azurite answers some with 200, 201 or 500, and others
    without a message."""
    reply = raw.ask("PUT", f"{container.container_name}/a", query, headers, body)
    assert reply.status == 400
    assert reply.code
    assert b"<Message>" in reply.body
    assert list(container.list_blobs(include=["uncommittedblobs"])) == []


def test_a_deleted_blob_leaves_no_staged_blocks(container: ContainerClient) -> None:
    """Deleting a blob drops its staged blocks. Azurite keeps them."""
    blob = container.upload_blob("a", b"1")
    blob.stage_block("b1", b"1")
    blob.delete_blob()
    blob.stage_block("b2", b"2")
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == ["b2"]


@pytest.mark.parametrize("asked", ["bytes=10-12", "bytes=10-"])
def test_the_end_is_beyond_the_end(container: ContainerClient, raw: Raw, asked: str) -> None:
    """A range that begins at the blob's end is a 416. Azurite answers 206 with no bytes."""
    container.upload_blob("a", b"0123456789")
    reply = raw.ask("GET", f"{container.container_name}/a", headers={"x-ms-range": asked})
    assert reply.refusal == (416, "InvalidRange")
    assert reply.headers["Content-Range"] == "bytes */10"


@pytest.mark.parametrize("asked", ["bytes=-2", "bytes=3-1", "lines=1-2", "bytes=1-2,4-5", "bytes=", "bytes=x-y", "b"])
def test_an_odd_range_is_no_error_of_ours(container: ContainerClient, raw: Raw, asked: str) -> None:
    """An odd range is refused or ignored, as HTTP allows. Azurite answers some with 500."""
    container.upload_blob("a", b"0123456789")
    reply = raw.ask("GET", f"{container.container_name}/a", headers={"Range": asked})
    assert (reply.status, reply.body) == (200, b"0123456789") or (reply.status in (400, 416) and reply.code)


def test_folders_stand_among_the_blobs(container: ContainerClient, raw: Raw) -> None:
    """A list sorts folders and blobs together. Azurite has the blobs of a page first."""
    for name in ("a", "b/1", "c", "d/1"):
        container.upload_blob(name, b"1")
    body = raw.ask("GET", container.container_name, "restype=container&comp=list&delimiter=/").body
    assert [one.text for one in ET.fromstring(body).iter("Name")] == ["a", "b/", "c", "d/"]


def test_a_delimiter_may_be_long(container: ContainerClient) -> None:
    """A delimiter may have any number of characters. Azurite uses only the first."""
    for name in ("a-b-c", "a-d", "b--c", "b-d"):
        container.upload_blob(name, b"1")
    assert sorted(one.name for one in container.walk_blobs(delimiter="--")) == ["a-b-c", "a-d", "b--", "b-d"]


def test_a_containers_batch_may_be_signed_by_a_sas(ours: Side, container: ContainerClient) -> None:
    """A SAS can also sign each part of a container's batch. Azurite answers 500."""
    for name in ("a", "b"):
        container.upload_blob(name, b"")
    credential = AzureSasCredential(account_sas())
    with ContainerClient(ours.blob_url, container.container_name, credential, retry_total=0) as client:
        assert [answer.status_code for answer in client.delete_blobs("a", "b")] == [202, 202]
    assert list(container.list_blobs()) == []


def test_too_much_for_a_batch(container: ContainerClient) -> None:
    """A batch of 257 parts is refused, and nothing is deleted. Azurite accepts it."""
    container.upload_blob("0", b"")
    assert refusal(container.delete_blobs, *map(str, range(257)))[0] in (400, 413)
    assert len(list(container.list_blobs())) == 1


def test_a_copy_does_not_show_its_sources_signature(container: ContainerClient, raw: Raw) -> None:
    """Neither the copy's properties nor a list show the source's signature. Azurite shows it to every reader."""
    source = container.upload_blob("a", b"1")
    container.get_blob_client("b").start_copy_from_url(f"{source.url}?{account_sas()}")
    head = raw.ask("HEAD", f"{container.container_name}/b").headers
    listed = raw.ask("GET", container.container_name, "restype=container&comp=list&include=copy").body
    assert head["x-ms-copy-source"] == source.url
    assert b"sig=" not in listed


def test_a_sources_unmet_condition_is_412(container: ContainerClient, raw: Raw) -> None:
    """Each of the four source conditions is a 412 if it is unmet. Azurite answers 304 to two of them."""
    source = container.upload_blob("a", b"1")
    head = raw.ask("HEAD", f"{container.container_name}/a").headers
    for name, value in {
        "if-match": '"0x1"',
        "if-none-match": head["ETag"],
        "if-modified-since": head["Last-Modified"],
        "if-unmodified-since": "Mon, 01 Jan 2001 00:00:00 GMT",
    }.items():
        headers = {"x-ms-copy-source": f"{source.url}?{account_sas()}", f"x-ms-source-{name}": value}
        assert raw.ask("PUT", f"{container.container_name}/b", headers=headers).status == 412


@pytest.mark.parametrize("unmet", ["If-None-Match", "If-Modified-Since"])
def test_a_snapshot_is_a_write(container: ContainerClient, raw: Raw, unmet: str) -> None:
    """A snapshot with an unmet condition is a 412, like every write. Azurite answers 304."""
    container.upload_blob("a", b"1")
    name = f"{container.container_name}/a"
    head = raw.ask("HEAD", name).headers
    value = head["ETag"] if unmet == "If-None-Match" else head["Last-Modified"]
    assert raw.ask("PUT", name, "comp=snapshot", {unmet: value}).refusal == (412, "ConditionNotMet")


def test_snapshots_are_listed_by_time(container: ContainerClient) -> None:
    """Snapshots are listed from the oldest to the newest, followed by the blob. Azurite has no order."""
    blob = container.upload_blob("a", b"1")
    times = [blob.create_snapshot()["snapshot"] for _ in range(5)]
    assert [one.snapshot for one in container.list_blobs(include=["snapshots"])] == [*times, None]
    pages = container.list_blobs(include=["snapshots"], results_per_page=1).by_page()
    assert [one.snapshot for page in pages for one in page] == [*times, None]
    assert times == sorted({str(one) for one in times})


def test_a_sealed_blob_takes_nothing_more(container: ContainerClient) -> None:
    """A sealed blob refuses appends, but its metadata can change. A copy is also sealed, unless the request says
    otherwise."""
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(b"one")
    assert refusal(log.seal_append_blob, appendpos_condition=1) == (412, "AppendPositionConditionNotMet")
    log.seal_append_blob(appendpos_condition=3)
    assert refusal(log.append_block, b"two") == (409, "BlobIsSealed")
    log.set_blob_metadata({"two": "2"})
    sealed, opened = container.get_blob_client("sealed"), container.get_blob_client("opened")
    sealed.start_copy_from_url(log.url)
    opened.start_copy_from_url(log.url, seal_destination_blob=False)
    opened.append_block(b"two")
    found = {blob.name: bool(blob.is_append_blob_sealed) for blob in container.list_blobs()}
    assert found == {"log": True, "opened": False, "sealed": True}
    assert opened.download_blob().readall() == b"onetwo"
