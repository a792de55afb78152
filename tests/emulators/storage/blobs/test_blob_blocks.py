"""Blobs that are made of blocks: what is staged, what is committed, against Azurite and against ours."""

from __future__ import annotations

import base64

import pytest
from azure.storage.blob import BlobBlock, BlobClient, ContainerClient
from azure.storage.blob._models import BlockState

from tests.emulators.storage.raw import Raw, commit_list, escaped, refusal


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("a")


def stage(blob: BlobClient, **blocks: bytes) -> None:
    for name, data in blocks.items():
        blob.stage_block(name, data)


def names_of(blob: BlobClient) -> tuple[list[str], list[str]]:
    """Ids of the committed blocks in their order, and of the uncommitted ones, sorted."""
    committed, uncommitted = blob.get_block_list("all")
    return [block.id for block in committed], sorted(block.id for block in uncommitted)


def test_blocks_are_put_together(blob: BlobClient) -> None:
    """In the order of the list, whatever the order of staging; a block may stand in it twice."""
    stage(blob, b1=b"one", b2=b"two", b3=b"three")
    blob.commit_block_list([BlobBlock("b3"), BlobBlock("b1"), BlobBlock("b3")])
    assert blob.download_blob().readall() == b"threeonethree"
    assert names_of(blob) == (["b3", "b1", "b3"], [])
    assert [block.size for block in blob.get_block_list("committed")[0]] == [5, 3, 5]


def test_staged_is_not_there_yet(container: ContainerClient, blob: BlobClient) -> None:
    """Before its first commit a blob is neither read nor listed, unless the list asks for what is uncommitted."""
    stage(blob, b1=b"one")
    assert refusal(blob.download_blob) == (404, "BlobNotFound")
    assert refusal(blob.get_blob_properties) == (404, "BlobNotFound")
    assert not blob.exists()
    assert list(container.list_blobs()) == []
    (listed,) = container.list_blobs(include=["uncommittedblobs"])
    assert (listed.name, listed.size) == ("a", 0)
    assert names_of(blob) == ([], ["b1"])


def test_a_reader_sees_no_staged_block(blob: BlobClient) -> None:
    """Staging changes neither bytes nor etag of what is there."""
    blob.upload_blob(b"old")
    before = blob.get_blob_properties()
    stage(blob, b1=b"new")
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified, after.size) == (before.etag, before.last_modified, 3)
    assert blob.download_blob().readall() == b"old"
    assert names_of(blob) == ([], ["b1"])


def test_a_block_is_staged_again(blob: BlobClient) -> None:
    """The last one of a name counts."""
    stage(blob, b1=b"first")
    stage(blob, b1=b"second one")
    assert [block.size for block in blob.get_block_list("uncommitted")[1]] == [10]
    blob.commit_block_list([BlobBlock("b1")])
    assert blob.download_blob().readall() == b"second one"


def test_committed_blocks_are_used_again(blob: BlobClient) -> None:
    """A commit may mix old and new blocks; what it does not name is gone."""
    stage(blob, b1=b"1", b2=b"2", b3=b"3")
    blob.commit_block_list([BlobBlock("b1"), BlobBlock("b2"), BlobBlock("b3")])
    stage(blob, b2=b"new", b4=b"never")
    blob.commit_block_list([BlobBlock("b3", BlockState.COMMITTED), BlobBlock("b2", BlockState.UNCOMMITTED)])
    assert blob.download_blob().readall() == b"3new"
    assert names_of(blob) == (["b3", "b2"], [])


def test_latest_prefers_the_staged(blob: BlobClient) -> None:
    """`Latest` is the staged block of that name if there is one, else the committed."""
    stage(blob, b1=b"old", b2=b"kept")
    blob.commit_block_list([BlobBlock("b1"), BlobBlock("b2")])
    stage(blob, b1=b"new")
    blob.commit_block_list([BlobBlock("b1"), BlobBlock("b2")])
    assert blob.download_blob().readall() == b"newkept"


@pytest.mark.parametrize(("state", "name"), [
    ("Latest", "b9"),
    ("Committed", "b9"),
    ("Uncommitted", "b9"),
    ("Committed", "b2"),
    ("Uncommitted", "b1"),
])  # fmt: skip
def test_an_unknown_block_is_refused(
    container: ContainerClient, blob: BlobClient, raw: Raw, state: str, name: str
) -> None:
    """A list that names a block which is not there, or not in that state, changes nothing."""
    stage(blob, b1=b"1")
    blob.commit_block_list([BlobBlock("b1")])
    stage(blob, b2=b"2")
    body = commit_list(("Latest", "b1"), (state, name))
    reply = raw.ask("PUT", f"{container.container_name}/a", "comp=blocklist", body=body)
    assert reply.refusal == (400, "InvalidBlockList")
    assert names_of(blob) == (["b1"], ["b2"])
    assert blob.download_blob().readall() == b"1"


def test_an_empty_list_is_an_empty_blob(blob: BlobClient) -> None:
    """Staged blocks go with it."""
    stage(blob, b1=b"1")
    blob.commit_block_list([])
    assert blob.download_blob().readall() == b""
    assert names_of(blob) == ([], [])


def test_a_deleted_blob_leaves_no_blocks(blob: BlobClient) -> None:
    """Neither its own nor staged ones."""
    stage(blob, b1=b"1")
    blob.commit_block_list([BlobBlock("b1")])
    stage(blob, b2=b"2")
    blob.delete_blob()
    assert refusal(blob.get_block_list, "all") == (404, "BlobNotFound")


def test_ids_of_a_blob_are_of_one_length(blob: BlobClient) -> None:
    """While there are staged blocks, an id of another length is refused."""
    stage(blob, b1=b"1")
    assert refusal(blob.stage_block, "longer", b"1") == (400, "InvalidBlobOrBlock")
    assert names_of(blob) == ([], ["b1"])


@pytest.mark.parametrize(("query", "status"), [
    ("comp=block&blockid=" + escaped(base64.b64encode(b"x" * 64).decode()), 201),
    ("comp=block&blockid=" + escaped(base64.b64encode(b"x" * 65).decode()), 400),
    ("comp=block&blockid=%21%21", 400),
    ("comp=block&blockid=AAA", 400),
    ("comp=block", 400),
])  # fmt: skip
def test_ids_are_base64_of_64_bytes_at_most(container: ContainerClient, raw: Raw, query: str, status: int) -> None:
    """Anything else is refused and leaves nothing."""
    reply = raw.ask("PUT", f"{container.container_name}/a", query, body=b"1")
    assert reply.status == status
    assert len(list(container.list_blobs(include=["uncommittedblobs"]))) == (status == 201)


def test_the_writer_of_a_block_is_told(container: ContainerClient, raw: Raw) -> None:
    """201 without etag or time: there is no new version yet. The commit has both."""
    name = f"{container.container_name}/a"
    staged = raw.ask("PUT", name, "comp=block&blockid=AAAA", body=b"1")
    assert (staged.status, staged.body, staged.headers["ETag"], staged.headers["Last-Modified"]) == (
        201,
        b"",
        None,
        None,
    )
    body = commit_list(("Latest", "\0\0\0"))
    committed = raw.ask("PUT", name, "comp=blocklist", {"x-ms-blob-content-type": "a/b", "x-ms-meta-one": "1"}, body)
    head = raw.ask("HEAD", name)
    assert (committed.status, committed.headers["ETag"]) == (201, head.headers["ETag"])
    assert (head.headers["Content-Type"], head.headers["x-ms-meta-one"]) == ("a/b", "1")


def test_a_blocks_md5_is_checked(container: ContainerClient, raw: Raw) -> None:
    """A block that is not what its writer counted is not staged."""
    wrong = {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
    reply = raw.ask("PUT", f"{container.container_name}/a", "comp=block&blockid=AAAA", wrong, b"1")
    assert reply.refusal == (400, "Md5Mismatch")
    assert list(container.list_blobs(include=["uncommittedblobs"])) == []


def test_a_list_is_of_the_kind_that_is_asked_for(container: ContainerClient, blob: BlobClient, raw: Raw) -> None:
    """Committed (which is the default), uncommitted or all; the blob's length stands in a header."""
    stage(blob, b1=b"one")
    blob.commit_block_list([BlobBlock("b1")])
    stage(blob, b2=b"22")
    name = f"{container.container_name}/a"
    replies = {kind: raw.ask("GET", name, f"comp=blocklist{kind}") for kind in ("", "&blocklisttype=uncommitted")}
    assert [reply.body.count(b"<Block>") for reply in replies.values()] == [1, 1]
    assert b"<Size>3</Size>" in replies[""].body
    assert b"<Size>2</Size>" in replies["&blocklisttype=uncommitted"].body
    assert {reply.headers["x-ms-blob-content-length"] for reply in replies.values()} == {"3"}
    assert replies[""].headers["ETag"] == blob.get_blob_properties().etag


@pytest.mark.parametrize("body", [
    b"<BlockList><Latest>",
    b"nonsense",
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><BlockList><Latest>&b;</Latest></BlockList>',
])  # fmt: skip
def test_a_broken_list_commits_nothing(container: ContainerClient, blob: BlobClient, raw: Raw, body: bytes) -> None:
    """What is not XML, or would grow when it is read, is 400, and the blob is as before."""
    blob.upload_blob(b"old")
    stage(blob, b1=b"1")
    assert raw.ask("PUT", f"{container.container_name}/a", "comp=blocklist", body=body).status == 400
    assert blob.download_blob().readall() == b"old"
    assert names_of(blob) == ([], ["b1"])
