"""A queue message as the function receives it: the body, and the trigger's metadata."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from datetime import datetime
from typing import Any

from azure.storage.queue import QueueMessage

from emulators.host.worker.backend import Value


def decode(content: str, *, base64: bool) -> bytes:
    """Return the body's bytes. Raises ValueError for a text that should be base64 and is not."""
    if not base64:
        return content.encode()
    try:
        return b64decode(content, validate=True)
    except binascii.Error as exc:
        raise ValueError(f"the message is not base64: {exc}") from exc


def body_value(body: bytes) -> Value:
    """Return the body as text if its bytes are text, otherwise as bytes."""
    try:
        return Value("string", body.decode("utf-8"))
    except UnicodeDecodeError:
        return Value("bytes", body)


def metadata(message: QueueMessage, body: Value) -> dict[str, Value]:
    """Return the trigger's metadata.

    Top-level members of a JSON body replace metadata of the same name, in any case, as in Azure: a body with an "id"
    changes `msg.id` for the function. Scalars become text, and arrays and nulls are ignored.
    """
    values = {
        "Id": Value("string", message.id),
        "DequeueCount": Value("json", str(message.dequeue_count)),
        "PopReceipt": Value("string", str(message.pop_receipt)),
        "InsertionTime": _time(message.inserted_on),
        "ExpirationTime": _time(message.expires_on),
        "NextVisibleTime": _time(message.next_visible_on),
    }
    if body.kind == "string":
        values["QueueTrigger"] = body
        names = {name.lower(): name for name in values}
        for member, content in _members(body.content).items():
            if content is not None and not isinstance(content, list):
                values[names.get(member.lower(), member)] = _member(content)
    return values


def _members(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _member(content: Any) -> Value:
    if isinstance(content, dict):
        return Value("json", json.dumps(content))
    return Value("string", str(content))


def _time(moment: datetime | None) -> Value:
    # An unknown time is sent as .NET's latest time, because the converter fails on a JSON null.
    return Value("json", json.dumps(moment.isoformat() if moment else "9999-12-31T23:59:59.999999+00:00"))
