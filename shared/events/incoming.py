"""Decode what arrives (queue messages and events) into plain values. Raises BadMessage with the reason."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.kernel.errors import BadInput, BadMessage
from shared.kernel.parsing import read_json

Json = dict[str, Any]
_PLAIN = (b"{", b"[")  # JSON objects and arrays start with these; base64 never does


def decode(body: bytes) -> Json:
    """Decode a queue message: a JSON object as text, or in base64 as Event Grid delivers it."""
    try:
        text = body if body.lstrip()[:1] in _PLAIN else base64.b64decode(body, validate=True)
    except (ValueError, binascii.Error) as exc:
        raise BadMessage(f"Neither JSON nor base64 of JSON: {body[:80]!r}.") from exc
    try:
        message = read_json(text, "The message")
    except BadInput as exc:
        raise BadMessage(str(exc)) from exc
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if not isinstance(message, dict):
        raise BadMessage(f"Expected one JSON object, found a {type(message).__name__}: {body[:80]!r}.")
    return message


def form(body: bytes, message: Json) -> str:
    """Return the form of this event: the schema, and the encoding in the queue. Azure has changed the encoding
    before.
    """
    schema = "CloudEvent" if "specversion" in message else "Event Grid's schema"
    return f"{schema}, {'plain text' if body.lstrip()[:1] in _PLAIN else 'base64'}"


def text(message: Json, key: str) -> str:
    """Return a required text member."""
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise BadMessage(f"The message has no text {key!r}: {json.dumps(message)[:200]}.")
    return value


@dataclass(frozen=True)
class BlobWritten:
    """A blob was written: container, name, and time, or None if the event has no time."""

    container: str
    name: str
    at: datetime | None


WRITTEN = frozenset(f"Microsoft.Storage.{kind}" for kind in ("BlobCreated", "BlobRenamed", "DirectoryRenamed"))
COMMITS = frozenset({"PutBlob", "PutBlockList", "CopyBlob", "FlushWithClose", "SftpCommit"})


def blob_written(event: Json) -> BlobWritten | None:
    """Decode a storage event, in Event Grid's schema or as a CloudEvent. None for an event about anything but a written
    blob.

    A renamed file or folder has its new name in the subject; a folder's name ends in a slash. The subject is
    `/blobServices/default/containers/<c>/blobs/<name>`; some published samples lack the leading slash.
    """
    if event_type(event) not in WRITTEN:
        return None
    if event_type(event) == "Microsoft.Storage.BlobCreated" and event_data(event).get("api") not in COMMITS:
        return None
    head, separator, rest = text(event, "subject").partition("containers/")
    container, found_blobs, name = rest.partition("/blobs/")
    if not (separator and found_blobs and name and "blobServices" in head):
        raise BadMessage(f"The subject does not name a blob: {event['subject'][:200]!r}.")
    return BlobWritten(container, name, event_time(event))


def event_type(event: Json) -> str:
    """Return the event's type, in either schema."""
    return text(event, "type" if "specversion" in event else "eventType")


def event_data(event: Json) -> Mapping[str, Any]:
    """Return the event's own data, under the keys of its type. Raises BadMessage for an event without data."""
    data = event.get("data")
    if not isinstance(data, dict):
        raise BadMessage(f"The event has no data: {json.dumps(event)[:200]}.")
    return data


def event_time(event: Json) -> datetime | None:
    """Return when the event occurred. A CloudEvent may omit the time."""
    if "specversion" in event and event.get("time") is None:
        return None
    value = text(event, "time" if "specversion" in event else "eventTime")
    try:
        at = datetime.fromisoformat(value)  # Azure writes seven decimals; Python keeps six
    except (ValueError, OverflowError) as exc:
        raise BadMessage(f"The event's time can't be read: {value!r}.") from exc
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
