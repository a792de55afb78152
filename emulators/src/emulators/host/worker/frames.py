"""Frames on the pipes between host and worker: pickled values, each preceded by its length."""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct("!I")
HEAD = _LENGTH.size


def packed(value: Any) -> bytes:
    body = pickle.dumps(value)
    return _LENGTH.pack(len(body)) + body


def length(head: bytes) -> int:
    """Return the length of the body, from these HEAD bytes."""
    size: int = _LENGTH.unpack(head)[0]
    return size


def value(body: bytes) -> Any:
    """Decode a value. The pipe has no other users, so the content is trusted."""
    return pickle.loads(body)  # noqa: S301


def read(source: BinaryIO) -> Any:
    """Return the next value. Raises EOFError at the end."""
    head = source.read(HEAD)
    if len(head) < HEAD:
        raise EOFError
    return value(source.read(length(head)))
