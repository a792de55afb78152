"""Messages are parsed strictly, and a message that can't be parsed says why."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.events import incoming
from shared.jobs.readers.run_event import job_of
from shared.kernel.errors import BadMessage

EVENT: dict[str, Any] = {
    "eventType": "Microsoft.Storage.BlobCreated",
    "subject": "/blobServices/default/containers/drops/blobs/mnist/a/ü 1#.bin",
    "eventTime": "2026-01-01T12:00:00.1234567Z",
    "data": {"api": "PutBlob"},
}
CLOUD_EVENT = {
    "specversion": "1.0",
    "type": "Microsoft.Storage.BlobCreated",
    "subject": "blobServices/default/containers/drops/blobs/mnist/a/ü 1#.bin",
    "time": "2026-01-01T12:00:00.1234567Z",
    "data": {"api": "PutBlob"},
}


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.integers(-(2**63) + 1, 2**63 - 1)
    )
)
def test_json_is_read_as_text_and_in_base64(message: dict[str, int]) -> None:
    """A message is accepted in both encodings that Event Grid has used, alone or in an array of one."""
    text = json.dumps(message).encode()

    assert incoming.decode(text) == message
    assert incoming.decode(base64.b64encode(text)) == message
    assert incoming.decode(b"[" + text + b"]") == message


@given(st.binary())
def test_anything_else_is_refused(body: bytes) -> None:
    """No bytes make decode raise anything except BadMessage."""
    with contextlib.suppress(BadMessage):
        assert isinstance(incoming.decode(body), dict)


def test_what_was_renamed_is_there_under_its_new_name() -> None:
    """A file or folder that was moved into the container counts as written; a CloudEvent may omit its time."""
    renamed = {**EVENT, "eventType": "Microsoft.Storage.BlobRenamed", "data": {"api": "RenameFile"}}
    assert (incoming.blob_written(renamed) or incoming.BlobWritten("", "", None)).name == "mnist/a/ü 1#.bin"
    folder = {**CLOUD_EVENT, "type": "Microsoft.Storage.DirectoryRenamed", "data": {"api": "RenameDirectory"}}
    folder = {key: value for key, value in folder.items() if key != "time"}
    folder["subject"] = "/blobServices/default/containers/drops/blobs/mnist/b/"
    assert incoming.blob_written(folder) == incoming.BlobWritten("drops", "mnist/b/", None)


@pytest.mark.parametrize("event", [EVENT, CLOUD_EVENT])
def test_both_event_schemas_tell_the_same(event: dict[str, Any]) -> None:
    """Container, name and time are parsed from either schema, with or without the subject's leading slash."""
    at = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)

    assert incoming.blob_written(event) == incoming.BlobWritten("drops", "mnist/a/ü 1#.bin", at)


@pytest.mark.parametrize(
    ("event"),
    [{**EVENT, "eventType": "Microsoft.Storage.BlobDeleted"}, {**EVENT, "data": {"api": "CreateFile"}}],
)
def test_other_events_are_no_uploads(event: dict[str, Any]) -> None:
    """Deletions and files that are not closed yet start nothing."""
    assert incoming.blob_written(event) is None


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({}, "no text 'eventType'"),
        ({**EVENT, "data": None}, "no data"),
        ({**EVENT, "subject": "/blobServices/default/containers/drops"}, "does not name a blob"),
        ({**EVENT, "eventTime": "yesterday"}, "can't be read: 'yesterday'"),
    ],
)
def test_broken_events_say_what_is_missing(event: dict[str, Any], why: str) -> None:
    """An event without a required field raises BadMessage that names the field."""
    with pytest.raises(BadMessage, match=why):
        incoming.blob_written(event)


def test_run_events_are_read_whatever_their_case() -> None:
    """Azure ML has sent RunId and runId."""
    kind = "Microsoft.MachineLearningServices.RunCompleted"

    assert job_of({"eventType": kind, "data": {"RunId": "r"}}) == "r"
    assert job_of({"specversion": "1.0", "type": kind, "data": {"runId": "r"}}) == "r"
    assert job_of({"eventType": "Microsoft.MachineLearningServices.ModelRegistered", "data": {}}) is None
    with pytest.raises(BadMessage, match="runid"):
        job_of({"eventType": kind, "data": {}})
