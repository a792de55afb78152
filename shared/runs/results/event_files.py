"""Rows of TensorBoard event files: framed protobuf records, of which few fields are read.

A record is its length (8 bytes), that length's checksum (4), the event, and the event's checksum (4). Framing:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/lib/io/record_writer.h. Fields: event.proto,
summary.proto, tensor.proto and types.proto of
https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Any

HEAD, CHECKSUM = 12, 4  # bytes before and behind an event
CHECKED = 64 << 10  # bytes; a larger event is an image or a graph, and its checksum would take seconds
# Folders for which Keras and other tools write separate files
PHASES = ("train", "training", "validation", "val", "test", "eval")
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # https://protobuf.dev/programming-guides/encoding/#structure
# By a tensor's type: the format of its content, and the field with its values if the content is empty.
TYPES = {1: ("f", 5), 2: ("d", 6), 3: ("i", 7), 4: ("B", 7), 5: ("h", 7), 6: ("b", 7), 9: ("q", 10), 10: ("?", 11)}
TYPES |= {17: ("H", 7), 19: ("e", 13), 22: ("I", 16), 23: ("Q", 17)}
log = logging.getLogger(__name__)
Field = tuple[int, int, Any]


def is_event_file(name: str) -> bool:
    return ".tfevents." in PurePosixPath(name).name


def rows(data: bytes, name: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The events with numbers in these bytes, each with the offset of the event's end. The bytes start with an event.

    Reading stops at an incomplete event. A metric in a folder such as `validation` is called `validation/<tag>`.
    """
    folder = PurePosixPath(name).parent.name
    before = f"{folder}/" if folder in PHASES else ""
    for event, end in _events(data):
        try:
            row = _row(event, before)
        except (ValueError, IndexError, struct.error):
            log.info("%s: an event that can't be read is left out", name)
            continue
        if len(row) > len(("step", "time")):
            yield row, end


def _events(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The complete events, up to the first incomplete event or wrong checksum."""
    at = 0
    while at + HEAD <= len(data):
        head = data[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        end = at + HEAD + length + CHECKSUM
        if _checksum(head) != data[at + 8 : at + HEAD] or end > len(data):
            return
        event = data[at + HEAD : end - CHECKSUM]
        if length <= CHECKED and _checksum(event) != data[end - CHECKSUM : end]:
            return
        yield event, end
        at = end


def _row(event: bytes, before: str) -> dict[str, Any]:
    row: dict[str, Any] = {"step": 0, "time": 0.0}
    for number, kind, value in _fields(event):
        if (number, kind) == (1, FIXED64):
            (row["time"],) = struct.unpack("<d", value)
        elif (number, kind) == (2, VARINT):
            row["step"] = _signed(value)
        elif (number, kind) == (5, BYTES):
            for _, _, each in (field for field in _fields(value) if field[:2] == (1, BYTES)):
                tag, told = _summary_value(each)
                row |= {} if told is None else {before + tag: told}
    return row


def _summary_value(data: bytes) -> tuple[str, float | None]:
    """A summary's name and number, in the form of TensorFlow 1 and PyTorch, or as a tensor with one element."""
    fields = {number: value for number, _, value in _fields(data)}
    tag = bytes(fields.get(1, b"")).decode()
    if 2 in fields:
        return tag, float(struct.unpack("<f", fields[2])[0])
    plugin = _first(_first(fields.get(9, b""), 1), 1)
    return tag, _tensor_number(fields[8]) if 8 in fields and plugin == b"scalars" else None


def _tensor_number(data: bytes) -> float | None:
    """The number in a tensor with one element; None for other tensors, and for text."""
    fields = list(_fields(data))
    kind = next((value for number, _, value in fields if number == 1), 0)
    shapes = [value for number, _, value in fields if number == 2]
    sizes = [_first(dim, 1, 0) for shape in shapes for number, _, dim in _fields(shape) if number == 2]
    if kind not in TYPES or any(size != 1 for size in sizes):
        return None
    form, place = TYPES[kind]
    if content := b"".join(value for number, _, value in fields if number == 4):
        return float(struct.unpack(f"<{form}", content)[0])
    values = [one for number, wire, value in fields if number == place for one in _values(wire, value, form)]
    return float(values[0]) if len(values) == 1 else None


def _values(wire: int, value: Any, form: str) -> Iterator[float]:
    """The numbers in one field of a tensor, packed or not."""
    if form in "fd":
        packed = value if wire != VARINT else b""
        yield from (number for (number,) in struct.iter_unpack(f"<{form}", packed))
        return
    numbers = [value] if wire == VARINT else [number for number, _ in _varints(value)]
    for number in map(_signed, numbers):
        yield struct.unpack("<e", struct.pack("<H", number))[0] if form == "e" else number


def _first(data: bytes, wanted: int, default: Any = b"") -> Any:
    """The value of the first field with this number."""
    return next((value for number, _, value in _fields(data) if number == wanted), default)


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message: number, wire type, and an int or bytes. Raises ValueError for an invalid message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        length = 8 if kind == FIXED64 else 4
        if kind == BYTES:
            length, at = _varint(data, at)
        elif kind not in (FIXED64, FIXED32):
            raise ValueError(f"wire type {kind}")
        if at + length > len(data):
            raise ValueError("cut off")
        yield number, kind, data[at : at + length]
        at += length


def _varints(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of 7 bits, and the offset of the number's end."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _checksum(data: bytes) -> bytes:
    """CRC-32C, masked as in records."""
    crc, table = 0xFFFFFFFF, _table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def _table() -> tuple[int, ...]:
    """The remainder of each byte by Castagnoli's polynomial, https://www.rfc-editor.org/rfc/rfc3720#appendix-B.4."""
    found = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        found.append(number)
    return tuple(found)
