"""Conditions in headers: a read, a write and a delete that wait for a version, against Azurite and against ours."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobClient, ContainerClient

from tests.emulators.storage.raw import BLOCK_BLOB, Raw, Reply, refusal

LONG_AGO = "Mon, 01 Jan 2001 00:00:00 GMT"
OTHER = '"0x8D000000000000"'


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", b"old")


@pytest.fixture
def name(blob: BlobClient) -> str:
    return f"{blob.container_name}/a"


def after(moment: datetime) -> str:
    return format_datetime(moment + timedelta(seconds=60), usegmt=True)


def given(raw: Raw, name: str, condition: str) -> dict[str, str]:
    """The header that a word stands for, with what the blob's own properties are."""
    head = raw.ask("HEAD", name).headers
    etag, modified = head["ETag"], head["Last-Modified"]
    return {
        "match": {"If-Match": etag},
        "match any": {"If-Match": "*"},
        "match other": {"If-Match": OTHER},
        "none match": {"If-None-Match": etag},
        "none match any": {"If-None-Match": "*"},
        "none match other": {"If-None-Match": OTHER},
        "modified since then": {"If-Modified-Since": modified},
        "modified since long ago": {"If-Modified-Since": LONG_AGO},
        "unmodified since then": {"If-Unmodified-Since": modified},
        "unmodified since long ago": {"If-Unmodified-Since": LONG_AGO},
        "unmodified since the future": {"If-Unmodified-Since": after(parsedate_to_datetime(modified))},
    }[condition]


HOLD = [
    "match", "match any", "none match other", "modified since long ago", "unmodified since then",
    "unmodified since the future",
]  # fmt: skip
FAIL = ["match other", "none match", "modified since then", "unmodified since long ago"]
READ_FAILS = {"none match": 304, "modified since then": 304, "match other": 412, "unmodified since long ago": 412}


@pytest.mark.parametrize("condition", HOLD)
def test_what_holds_changes_nothing(raw: Raw, name: str, condition: str) -> None:
    """A read, a write of metadata, a commit and a delete go through."""
    assert raw.ask("GET", name, headers=given(raw, name, condition)).body == b"old"
    assert raw.ask("HEAD", name, headers=given(raw, name, condition)).status == 200
    assert raw.ask("PUT", name, "comp=metadata", given(raw, name, condition)).status == 200
    assert raw.ask("PUT", name, "comp=properties", given(raw, name, condition)).status == 200
    put = raw.ask("PUT", name, headers={**BLOCK_BLOB, **given(raw, name, condition)}, body=b"new")
    assert put.status == 201
    assert raw.ask("DELETE", name, headers=given(raw, name, condition)).status == 202


@pytest.mark.parametrize("condition", FAIL)
def test_what_does_not_hold_reads_nothing(raw: Raw, name: str, condition: str) -> None:
    """304 if the reader has this version already, 412 if it wants another."""
    expected = (READ_FAILS[condition], "ConditionNotMet")
    head = raw.ask("HEAD", name, headers=given(raw, name, condition))
    assert (head.refusal, head.body) == (expected, b"")
    get = raw.ask("GET", name, headers=given(raw, name, condition))
    assert get.refusal == expected
    assert bool(get.body) == (get.status == 412)


def writes(raw: Raw, name: str, condition: dict[str, str]) -> list[Reply]:
    return [
        raw.ask("PUT", name, headers={**BLOCK_BLOB, **condition}, body=b"new"),
        raw.ask("PUT", name, "comp=blocklist", condition, b"<BlockList></BlockList>"),
        raw.ask("PUT", name, "comp=metadata", {**condition, "x-ms-meta-a": "1"}),
        raw.ask("PUT", name, "comp=properties", {**condition, "x-ms-blob-content-type": "a/b"}),
        raw.ask("DELETE", name, headers=condition),
    ]


@pytest.mark.parametrize("condition", FAIL)
def test_what_does_not_hold_writes_nothing(raw: Raw, name: str, blob: BlobClient, condition: str) -> None:
    """412 for each way to write, and the blob is as before."""
    before = blob.get_blob_properties()
    replies = writes(raw, name, given(raw, name, condition))
    assert {reply.refusal for reply in replies} == {(412, "ConditionNotMet")}
    now = blob.get_blob_properties()
    assert (now.etag, now.size, now.metadata) == (before.etag, 3, {})


def test_only_if_it_is_not_there(raw: Raw, name: str) -> None:
    """If-None-Match: * refuses what would overwrite."""
    condition = {**BLOCK_BLOB, "If-None-Match": "*"}
    assert raw.ask("PUT", name, headers=condition, body=b"new").refusal == (409, "BlobAlreadyExists")
    assert raw.ask("GET", name).body == b"old"
    other = f"{name}-other"
    assert raw.ask("PUT", other, headers=condition, body=b"new").status == 201
    assert raw.ask("PUT", other, headers={**BLOCK_BLOB, "If-None-Match": "*"}, body=b"2").status == 409


@pytest.mark.parametrize("condition", [{"If-Match": OTHER}, {"If-Match": "*"}])
def test_nothing_there_matches_nothing(container: ContainerClient, raw: Raw, condition: dict[str, str]) -> None:
    """A write that wants a version is refused where there is none."""
    name = f"{container.container_name}/missing"
    reply = raw.ask("PUT", name, headers={**BLOCK_BLOB, **condition}, body=b"new")
    assert reply.refusal == (412, "ConditionNotMet")
    assert list(container.list_blobs()) == []


def test_etags_may_stand_without_quotes(raw: Raw, name: str) -> None:
    """As lists give them."""
    etag = raw.ask("HEAD", name).headers["ETag"].strip('"')
    assert raw.ask("GET", name, headers={"If-Match": etag}).status == 200
    assert raw.ask("GET", name, headers={"If-None-Match": etag}).status == 304


def test_two_writers_of_one_version(blob: BlobClient) -> None:
    """Whoever read a version and writes it anew is refused if another was faster."""
    etag = blob.get_blob_properties().etag
    once: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified, "overwrite": True}
    blob.upload_blob(b"first", **once)
    assert refusal(blob.upload_blob, b"second", **once) == (412, "ConditionNotMet")
    assert blob.download_blob().readall() == b"first"


def test_the_package_waits_for_a_change(blob: BlobClient) -> None:
    """A reader that has this version gets 304."""
    etag = blob.get_blob_properties().etag
    changed: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfModified}
    assert refusal(blob.download_blob, **changed)[0] == 304
    blob.upload_blob(b"new", overwrite=True)
    assert blob.download_blob(**changed).readall() == b"new"


def test_lists_give_the_same_etag(container: ContainerClient, blob: BlobClient) -> None:
    """What a list says can be used as a condition."""
    (listed,) = container.list_blobs()
    found = blob.download_blob(etag=listed.etag, match_condition=MatchConditions.IfNotModified)
    assert found.readall() == b"old"


def test_tags_may_be_a_condition(container: ContainerClient) -> None:
    """A read and a write go through only if the blob's tags are as said."""
    blob = container.upload_blob("tagged", b"old", tags={"k": "v"})
    other, same = "\"k\"='w'", "\"k\"='v'"
    unmet = (412, "ConditionNotMet")
    assert refusal(blob.download_blob, if_tags_match_condition=other) == unmet
    assert refusal(blob.upload_blob, b"new", overwrite=True, if_tags_match_condition=other) == unmet
    assert refusal(blob.delete_blob, if_tags_match_condition=other) == unmet
    assert blob.download_blob(if_tags_match_condition=same).readall() == b"old"
    blob.delete_blob(if_tags_match_condition=same)
    assert not blob.exists()
