"""Conditional headers of reads, writes and deletes."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobClient, ContainerClient

from emulator_tests.storage.raw import BLOCK_BLOB, Raw

LONG_AGO = "Mon, 01 Jan 2001 00:00:00 GMT"
OTHER = '"0x8D000000000000"'


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", b"old")


@pytest.fixture
def name(blob: BlobClient) -> str:
    return f"{blob.container_name}/a"


def given(raw: Raw, name: str, condition: str) -> dict[str, str]:
    """Return the header for a condition, with the blob's own properties."""
    head = raw.ask("HEAD", name).headers
    etag, modified = head["ETag"], head["Last-Modified"]
    return {
        "match other": {"If-Match": OTHER},
        "none match": {"If-None-Match": etag},
        "modified since then": {"If-Modified-Since": modified},
        "unmodified since long ago": {"If-Unmodified-Since": LONG_AGO},
    }[condition]


READ_FAILS = {"none match": 304, "modified since then": 304, "match other": 412, "unmodified since long ago": 412}


@pytest.mark.parametrize(("condition", "status"), READ_FAILS.items())
def test_what_does_not_hold_reads_nothing(raw: Raw, name: str, condition: str, status: int) -> None:
    """A read is a 304 if the reader already has this version, and a 412 if it requires another version."""
    expected = (status, "ConditionNotMet")
    head = raw.ask("HEAD", name, headers=given(raw, name, condition))
    assert (head.refusal, head.body) == (expected, b"")
    get = raw.ask("GET", name, headers=given(raw, name, condition))
    assert get.refusal == expected
    assert bool(get.body) == (get.status == 412)


@pytest.mark.parametrize("condition", [{"If-Match": OTHER}, {"If-Match": "*"}])
def test_nothing_there_matches_nothing(container: ContainerClient, raw: Raw, condition: dict[str, str]) -> None:
    """A write that requires a version is refused if the blob is missing."""
    name = f"{container.container_name}/missing"
    reply = raw.ask("PUT", name, headers={**BLOCK_BLOB, **condition}, body=b"new")
    assert reply.refusal == (412, "ConditionNotMet")
    assert list(container.list_blobs()) == []


def test_etags_may_stand_without_quotes(raw: Raw, name: str) -> None:
    """Etags are also accepted without quotes, as lists show them."""
    etag = raw.ask("HEAD", name).headers["ETag"].strip('"')
    assert raw.ask("GET", name, headers={"If-Match": etag}).status == 200
    assert raw.ask("GET", name, headers={"If-None-Match": etag}).status == 304


def test_an_etag_of_another_kind_matches_nothing(raw: Raw, name: str) -> None:
    """Text that no etag has is another version. Several etags in one header are refused, as Azure documents."""
    etag = raw.ask("HEAD", name).headers["ETag"]
    assert raw.ask("GET", name, headers={"If-Match": f"{etag}2"}).refusal == (412, "ConditionNotMet")
    assert raw.ask("GET", name, headers={"If-Match": f"*,{etag}"}).status == 400


def test_only_a_write_that_creates_minds_that_the_blob_exists(raw: Raw, name: str) -> None:
    """`If-None-Match: *` keeps an upload from replacing a blob. It does not keep a deletion from deleting one."""
    anything = {"If-None-Match": "*"}
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, **anything}, body=b"new").refusal == (409, "BlobAlreadyExists")
    assert raw.ask("DELETE", name, headers=anything).status == 202
