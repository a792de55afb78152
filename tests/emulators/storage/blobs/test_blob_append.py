"""Append blobs: pieces at the end, under conditions, against Azurite and against ours."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

from tests.emulators.storage.raw import BLOCK_BLOB, Raw, refusal

APPEND_BLOB = {"x-ms-blob-type": "AppendBlob"}


@pytest.fixture
def log(container: ContainerClient) -> BlobClient:
    client = container.get_blob_client("log")
    client.create_append_blob(content_settings=ContentSettings(content_type="text/plain"), metadata={"one": "1"})
    return client


def test_pieces_are_added(log: BlobClient) -> None:
    """Each at the end; the answer says where it began and how many there are."""
    first = log.append_block(b"one\n")
    second = log.append_block(b"two\n")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("4", 2)
    assert log.download_blob().readall() == b"one\ntwo\n"


def test_what_it_says_of_itself(log: BlobClient) -> None:
    """Type, length and number of pieces; settings and metadata stay as they were made."""
    made = log.get_blob_properties()
    assert (made.blob_type, made.size, made.append_blob_committed_block_count) == ("AppendBlob", 0, 0)
    answer = log.append_block(b"one\n")
    found = log.get_blob_properties()
    assert (found.size, found.append_blob_committed_block_count, found.etag) == (4, 1, answer["etag"])
    assert found.etag != made.etag
    assert (found.content_settings.content_type, found.metadata) == ("text/plain", {"one": "1"})
    assert found.blob_tier is None


def test_it_is_listed_as_what_it_is(container: ContainerClient, log: BlobClient) -> None:
    """With its type and length."""
    log.append_block(b"one\n")
    (listed,) = container.list_blobs()
    assert (listed.blob_type, listed.size) == ("AppendBlob", 4)


def test_ranges_are_read_across_pieces(log: BlobClient) -> None:
    """A reader sees one text."""
    for piece in (b"abc", b"def", b"ghi"):
        log.append_block(piece)
    assert log.download_blob(offset=2, length=5).readall() == b"cdefg"


def test_only_at_a_place(log: BlobClient) -> None:
    """A writer that says where its piece must begin is refused elsewhere."""
    log.append_block(b"one", appendpos_condition=0)
    assert refusal(log.append_block, b"two", appendpos_condition=0) == (412, "AppendPositionConditionNotMet")
    assert refusal(log.append_block, b"two", appendpos_condition=9) == (412, "AppendPositionConditionNotMet")
    log.append_block(b"two", appendpos_condition=3)
    assert log.download_blob().readall() == b"onetwo"


def test_only_up_to_a_length(log: BlobClient) -> None:
    """A piece with which the blob would be longer is refused; exactly that length is not."""
    log.append_block(b"one", maxsize_condition=3)
    assert refusal(log.append_block, b"2", maxsize_condition=3) == (412, "MaxBlobSizeConditionNotMet")
    assert log.download_blob().readall() == b"one"


def test_only_to_a_version(log: BlobClient, raw: Raw) -> None:
    """The usual conditions hold too."""
    name = f"{log.container_name}/log"
    etag = log.get_blob_properties().etag
    assert raw.ask("PUT", name, "comp=appendblock", {"If-Match": etag}, b"1").status == 201
    assert raw.ask("PUT", name, "comp=appendblock", {"If-Match": etag}, b"2").refusal == (412, "ConditionNotMet")
    assert log.download_blob().readall() == b"1"


def test_a_new_one_is_empty(log: BlobClient) -> None:
    """Creating it again begins anew; under If-None-Match: * it is refused."""
    log.append_block(b"one")
    log.create_append_blob()
    found = log.get_blob_properties()
    assert (found.size, found.append_blob_committed_block_count, found.metadata) == (0, 0, {})


def test_only_a_new_one(log: BlobClient, raw: Raw) -> None:
    """With If-None-Match: * what is there stays."""
    log.append_block(b"one")
    reply = raw.ask("PUT", f"{log.container_name}/log", headers={**APPEND_BLOB, "If-None-Match": "*"})
    assert reply.refusal == (409, "BlobAlreadyExists")
    assert log.download_blob().readall() == b"one"


def test_types_do_not_mix(container: ContainerClient, log: BlobClient, raw: Raw) -> None:
    """Neither a piece for a block blob nor a block for an append blob."""
    container.upload_blob("block", b"1")
    block, name = f"{container.container_name}/block", f"{container.container_name}/log"
    wrong = (409, "InvalidBlobType")
    assert raw.ask("PUT", block, "comp=appendblock", body=b"1").refusal == wrong
    assert raw.ask("PUT", name, "comp=block&blockid=AAAA", body=b"1").refusal == wrong
    assert raw.ask("PUT", name, "comp=blocklist", body=b"<BlockList></BlockList>").refusal == wrong
    assert raw.ask("GET", name, "comp=blocklist").refusal == wrong
    assert raw.ask("PUT", f"{container.container_name}/none", "comp=appendblock", body=b"1").refusal == (
        404,
        "BlobNotFound",
    )


def test_one_put_makes_it_another_type(log: BlobClient, raw: Raw) -> None:
    """Whoever writes a block blob of that name replaces it."""
    log.append_block(b"one")
    assert raw.ask("PUT", f"{log.container_name}/log", headers=BLOCK_BLOB, body=b"whole").status == 201
    assert (log.get_blob_properties().blob_type, log.download_blob().readall()) == ("BlockBlob", b"whole")


def test_it_is_made_empty(container: ContainerClient, raw: Raw) -> None:
    """Its creation has no bytes."""
    reply = raw.ask("PUT", f"{container.container_name}/log", headers=APPEND_BLOB, body=b"bytes")
    assert reply.status == 400
    assert list(container.list_blobs()) == []


def test_a_piece_has_bytes_and_its_md5(log: BlobClient, raw: Raw) -> None:
    """A wrong MD5 or no bytes at all add nothing."""
    name = f"{log.container_name}/log"
    wrong = {"Content-MD5": base64.b64encode(b"0" * 16).decode()}
    assert raw.ask("PUT", name, "comp=appendblock", wrong, b"1").refusal == (400, "Md5Mismatch")
    assert raw.ask("PUT", name, "comp=appendblock").status == 400
    assert log.get_blob_properties().append_blob_committed_block_count == 0


def test_writers_at_once_lose_nothing(log: BlobClient) -> None:
    """Pieces of several writers stand one after the other, each whole."""
    pieces = [f"{number:04}\n".encode() for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(log.append_block, pieces))
    content = log.download_blob().readall()
    assert sorted(content.splitlines(keepends=True)) == pieces
    assert [content[int(str(answer["blob_append_offset"])) :][:5] for answer in answers] == pieces


def test_the_package_writes_streams(container: ContainerClient) -> None:
    """upload_blob of that type makes the blob if need be, and adds to it after that."""
    client = container.get_blob_client("log")
    client.upload_blob(b"one", blob_type="AppendBlob")
    client.upload_blob(b"two", blob_type="AppendBlob")
    assert client.download_blob().readall() == b"onetwo"
    client.upload_blob(b"new", blob_type="AppendBlob", overwrite=True)
    assert client.download_blob().readall() == b"new"
