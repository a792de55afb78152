"""Tables: what the beginning of a CSV file and the footer of a Parquet file say. Pure.

Parquet's footer is Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/
thrift-compact-protocol.md); its fields are in https://github.com/apache/parquet-format (parquet.thrift, FileMetaData).
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .findings import DataError

MAGIC = b"PAR1"
FOOTER = 16 << 20  # bytes of a footer that are read
DEEPEST = 32
DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Table:
    """The names of the columns, and the number of rows; None if it is not known."""

    columns: tuple[str, ...]
    rows: int | None = None


def delimiter_of(text: str) -> str:
    """Return the delimiter that the first line has most of, a comma if it has none."""
    first = text.split("\n", 1)[0]
    return max(DELIMITERS, key=lambda each: (first.count(each), each == ","))


def rows_of(text: str, delimiter: str, whole: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not blank. Without `whole`, the last line is left out."""
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines if whole else lines[:-1], delimiter=delimiter)
    for row in reader:
        if row:
            yield reader.line_num, row


def footer_size(place: str, head: bytes, tail: bytes) -> int:
    """Return the size of a Parquet file's footer. `tail` are the last 8 bytes. Raises DataError for another file."""
    if head[:4] != MAGIC:
        raise DataError(f"{place}: expected a Parquet file, which begins with PAR1, found 0x{head[:4].hex()}")
    if len(tail) < 8 or tail[-4:] != MAGIC:
        raise DataError(f"{place}: expected a whole Parquet file, found no PAR1 at its end: it is cut off")
    (size,) = struct.unpack("<I", tail[-8:-4])
    return int(size)


def read_footer(place: str, footer: bytes) -> Table:
    """Return the columns at the top of the schema, and the rows. Raises DataError for a footer that can't be read."""
    try:
        fields = _Compact(footer).struct(0)
        schema, rows = fields[2], fields[3]
        top = int(schema[0].get(5, 0))
        names, at = [], 1
        for _ in range(top):
            names.append(bytes(schema[at][4]).decode("utf-8", "replace"))
            at = _after(schema, at)
        return Table(tuple(names), int(rows))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{place}: expected the footer of a Parquet file, found {type(error).__name__}") from error


def _after(schema: list[dict[int, Any]], at: int) -> int:
    """Return the place after the element at `at` and its children: the schema is a tree, in depth-first order."""
    left = 1
    while left:
        left += int(schema[at].get(5, 0)) - 1
        at += 1
    return at


class _Compact:
    """A reader of Thrift's compact protocol. Raises IndexError at the end of the bytes, ValueError for other bytes."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _int(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int) -> dict[int, Any]:
        """Return the fields of a struct by their ids."""
        if depth > DEEPEST:
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._int()
            fields[number] = self._value(head & 0x0F, depth, in_list=False)
        return fields

    def _value(self, kind: int, depth: int, in_list: bool) -> Any:
        if kind in (1, 2):
            return self._byte() == 1 if in_list else kind == 1
        if kind in (4, 5, 6):
            return self._int()
        if kind == 3:
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            return self._list(depth + 1)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._content) or depth > DEEPEST:
            raise ValueError("too long")
        return [self._value(head & 0x0F, depth, in_list=True) for _ in range(size)]

    def _bytes(self, size: int) -> bytes:
        if size > len(self._content) - self._at:
            raise IndexError("the end")
        self._at += size
        return self._content[self._at - size : self._at]
