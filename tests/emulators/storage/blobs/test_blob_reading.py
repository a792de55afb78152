"""Reading blobs, whole and in part, against Azurite and against ours."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterator

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.azurite import ACCOUNT, KEY
from tests.emulators.storage.conftest import Side
from tests.emulators.storage.raw import CONTENT, Raw, refusal

RANGES = {
    "bytes=0-0": (b"0", "0-0"),
    "bytes=2-4": (b"234", "2-4"),
    "bytes=7-": (b"789", "7-9"),
    "bytes=0-": (CONTENT, "0-9"),
    "bytes=8-100": (b"89", "8-9"),
    "bytes=0-9": (CONTENT, "0-9"),
}


@pytest.mark.parametrize("header", ["Range", "x-ms-range"])
@pytest.mark.parametrize(("asked", "got"), RANGES.items())
def test_a_part_is_read(raw: Raw, name: str, header: str, asked: str, got: tuple[bytes, str]) -> None:
    """206 with the bytes and where they lie; the MD5 of the whole stands apart from that of the part."""
    reply = raw.ask("GET", name, headers={header: asked})
    assert (reply.status, reply.body) == (206, got[0])
    assert reply.headers["Content-Range"] == f"bytes {got[1]}/10"
    assert reply.headers["Content-Length"] == str(len(got[0]))
    assert reply.headers["x-ms-blob-content-md5"] == _md5(CONTENT)
    assert reply.headers["Content-MD5"] is None


def test_x_ms_range_goes_first(raw: Raw, name: str) -> None:
    """It counts where both are given, as proxies may add the other."""
    assert raw.ask("GET", name, headers={"Range": "bytes=0-0", "x-ms-range": "bytes=5-5"}).body == b"5"


@pytest.mark.parametrize("asked", ["bytes=11-12", "bytes=100-", "bytes=100-200"])
def test_nothing_lies_beyond_the_end(raw: Raw, name: str, asked: str) -> None:
    """416, with the length of the blob."""
    reply = raw.ask("GET", name, headers={"x-ms-range": asked})
    assert reply.refusal == (416, "InvalidRange")
    assert reply.headers["Content-Range"] == "bytes */10"


def test_an_empty_blob_has_no_parts(container: ContainerClient, raw: Raw) -> None:
    """It is read whole, and 416 for any range; the package reads it in spite of that."""
    blob = container.upload_blob("empty", b"")
    path = f"{container.container_name}/empty"
    assert raw.ask("GET", path, headers={"x-ms-range": "bytes=0-10"}).refusal == (416, "InvalidRange")
    assert raw.ask("GET", path).status == 200
    assert blob.download_blob().readall() == b""


def test_the_md5_of_a_part(raw: Raw, name: str) -> None:
    """On request."""
    reply = raw.ask("GET", name, headers={"x-ms-range": "bytes=1-2", "x-ms-range-get-content-md5": "true"})
    assert (reply.body, reply.headers["Content-MD5"]) == (b"12", _md5(b"12"))
    assert reply.headers["x-ms-blob-content-md5"] == _md5(CONTENT)


def test_head_says_what_get_says(raw: Raw, name: str) -> None:
    """The same headers without the bytes."""
    head, get = raw.ask("HEAD", name), raw.ask("GET", name)
    assert (head.status, head.body, get.status, get.body) == (200, b"", 200, CONTENT)
    for header in (
        "Content-Length", "Content-Type", "Content-MD5", "ETag", "Last-Modified", "Accept-Ranges", "x-ms-blob-type",
        "x-ms-creation-time", "x-ms-lease-state", "x-ms-lease-status", "x-ms-meta-one", "x-ms-server-encrypted",
    ):  # fmt: skip
        assert head.headers[header] == get.headers[header] is not None
    assert head.headers["x-ms-access-tier"] == "Hot"


def test_what_is_missing_has_no_body_on_head(raw: Raw, container: ContainerClient) -> None:
    """404, and its code stands in a header."""
    reply = raw.ask("HEAD", f"{container.container_name}/missing")
    assert (reply.refusal, reply.body) == ((404, "BlobNotFound"), b"")


def test_the_package_reads_parts(blob: BlobClient) -> None:
    """By offset and length."""
    assert blob.download_blob(offset=3, length=4).readall() == b"3456"
    assert blob.download_blob(offset=8).readall() == b"89"
    assert refusal(blob.download_blob, offset=50) == (416, "InvalidRange")


@pytest.fixture
def pieces(side: Side, blob: BlobClient) -> Iterator[BlobClient]:
    """The same blob by a client that fetches three bytes at a time."""
    key = AzureNamedKeyCredential(ACCOUNT, KEY)
    with BlobServiceClient(side.blob_url, key, retry_total=0, max_single_get_size=3, max_chunk_get_size=3) as service:
        yield service.get_blob_client(blob.container_name, "a")


def test_pieces_are_put_together(pieces: BlobClient) -> None:
    """Four at a time, or one after the other."""
    assert pieces.download_blob(max_concurrency=4).readall() == CONTENT
    assert list(pieces.download_blob().chunks()) == [b"012", b"345", b"678", b"9"]


def test_a_blob_that_changes_is_not_read_on(pieces: BlobClient, blob: BlobClient) -> None:
    """The package asks for the version with which it began: 412 instead of a mixture of two."""
    download = pieces.download_blob()
    blob.upload_blob(b"x" * 10, overwrite=True)
    assert refusal(download.readall) == (412, "ConditionNotMet")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=12), first=st.integers(0, 12), last=st.one_of(st.none(), st.integers(0, 14)))
def test_any_range_is_a_slice(
    container: ContainerClient, raw: Raw, content: bytes, first: int, last: int | None
) -> None:
    """A range within the blob is what Python's slice is; one that ends beyond it ends with it."""
    if first >= len(content) or (last is not None and last < first):
        return
    path = f"{container.container_name}/{uuid.uuid4().hex}"
    raw.ask("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=content)
    end = len(content) if last is None else last + 1
    reply = raw.ask("GET", path, headers={"Range": f"bytes={first}-{'' if last is None else last}"})
    assert (reply.status, reply.body) == (206, content[first:end])
    assert reply.headers["Content-Range"] == f"bytes {first}-{min(end, len(content)) - 1}/{len(content)}"


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
