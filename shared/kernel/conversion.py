"""Plain values as typed ones: msgspec's `convert` and `decode`, safe in threads.

msgspec keeps what it knows of a class with the class, and puts it there before it is complete. A second thread that
converts to the class in that moment ends the whole process (SIGSEGV; msgspec 0.22, `DataclassInfo_Convert`). So what it
knows is put together by one thread at a time, before a value is converted.
"""

from __future__ import annotations

from threading import RLock
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")

_decoders: dict[object, msgspec.json.Decoder[Any]] = {}
_preparing = RLock()


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """The value as one of this type; not `strict`: texts become numbers and truth values. Raises
    msgspec.ValidationError."""
    _decoder(kind)
    return msgspec.convert(value, kind, strict=strict)


def decode(text: str | bytes, kind: type[T]) -> T:
    """JSON as a value of this type. Raises msgspec.DecodeError, and UnicodeError."""
    return cast("T", _decoder(kind).decode(text))


def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    if (found := _decoders.get(kind)) is None:
        with _preparing:
            found = _decoders[kind] = msgspec.json.Decoder(cast("type[Any]", kind))
    return found
