"""The parts of a Parquet file that are read without its values: the footer, and the header of each column's first page.
Pure.

The fields are those of FileMetaData and PageHeader in https://github.com/apache/parquet-format (parquet.thrift).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .findings import DataError
from .thrift import Compact

MAGIC = b"PAR1"
FOOTER = 16 << 20  # bytes of a footer that are read
PAGE_HEADER = 4096  # bytes that are read of a page; its header has statistics of some bytes
BROKEN = (LookupError, TypeError, ValueError, AttributeError, struct.error)
_NUMBERS = {1: "<i", 2: "<q", 4: "<f", 5: "<d"}  # physical types: INT32, INT64, FLOAT, DOUBLE
_NAMES = {0: "boolean", 1: "integer", 2: "integer", 4: "number", 5: "number"}
_CONVERTED = {0: "string", 4: "string", 5: "number", 6: "date", 7: "time", 8: "time", 9: "date-time", 10: "date-time"}
_LOGICAL = {1: "string", 4: "string", 5: "number", 6: "date", 7: "time", 8: "date-time", 12: "string", 14: "uuid"}
_MANY = {"list", "group"}


@dataclass(frozen=True)
class Footed:
    """A column at the top of the schema: its type and its statistics (None where a statistic is missing)."""

    type: str
    optional: bool = False
    nulls: int | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: its name, and the start and end of its pages in the file."""

    column: str
    begin: int
    end: int


@dataclass(frozen=True)
class Footer:
    """The columns by name, the rows, and the places of the column chunks."""

    columns: Mapping[str, Footed]
    rows: int
    chunks: list[Chunk] = field(default_factory=list)


def footer_size(place: str, head: bytes, tail: bytes) -> int:
    """Return the size of a Parquet file's footer. `tail` is the last 8 bytes. Raises DataError for another kind of
    file."""
    if head[:4] != MAGIC:
        raise DataError(f"{place}: expected a Parquet file, which begins with PAR1, found 0x{head[:4].hex()}")
    if len(tail) < 8 or tail[-4:] != MAGIC:
        raise DataError(f"{place}: expected a whole Parquet file, found no PAR1 at its end: it is cut off")
    (size,) = struct.unpack("<I", tail[-8:-4])
    return int(size)


def read_footer(place: str, content: bytes) -> Footer:
    """Return the content of a footer. Raises DataError for a footer that can't be read, or that contradicts itself."""
    try:
        fields = Compact(content).struct(0)
        rows, groups = int(fields[3]), list(fields.get(4, ()))
        schema = _top(fields[2])
        chunks = [_chunk(each[3]) for group in groups for each in group[1]]
        told = {name: [each[3] for group in groups for each in group[1] if _name(each[3]) == name] for name in schema}
        columns = {name: _with_statistics(element, told[name]) for name, element in schema.items()}
        counted = sum(int(group[3]) for group in groups)
    except BROKEN as error:
        raise DataError(f"{place}: expected the footer of a Parquet file, found {type(error).__name__}") from error
    if counted != rows:
        raise DataError(f"{place}: expected {rows:,} rows in the row groups, as the footer says, found {counted:,}")
    return Footer(columns, rows, chunks)


def _top(schema: list[dict[int, Any]]) -> dict[str, dict[int, Any]]:
    """Return the elements at the top of the schema, which is a tree in depth-first order."""
    found: dict[str, dict[int, Any]] = {}
    at = 1
    for _ in range(int(schema[0].get(5, 0))):
        found[bytes(schema[at][4]).decode("utf-8", "replace")] = schema[at]
        left = 1
        while left:
            left += int(schema[at].get(5, 0)) - 1
            at += 1
    return found


def _type(element: dict[int, Any]) -> str:
    if element.get(5):  # children
        return "list" if element.get(6) == 3 or 3 in element.get(10, {}) else "group"
    if element.get(3) == 2:  # repeated
        return "list"
    logical = next(iter(element.get(10) or ()), None)
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if element.get(6) in _CONVERTED:
        return _CONVERTED[element[6]]
    return _NAMES.get(element.get(1, -1), "date-time" if element.get(1) == 3 else "bytes")


def _name(chunk: dict[int, Any]) -> str:
    return bytes(chunk[3][0]).decode("utf-8", "replace")


def _chunk(meta: dict[int, Any]) -> Chunk:
    begin = int(meta[9])
    if 0 < int(meta.get(11, 0)) < begin:  # the dictionary page
        begin = int(meta[11])
    return Chunk(_name(meta), begin, begin + int(meta[7]))


def _with_statistics(element: dict[int, Any], metas: list[dict[int, Any]]) -> Footed:
    """Return a column with the bounds and null counts of all its chunks; a statistic that any chunk lacks is left
    out."""
    kind, optional = _type(element), element.get(3) != 0
    told = [meta.get(12) or {} for meta in metas]
    if not told or kind in _MANY:
        return Footed(kind, optional)
    nulls: list[Any] = [each.get(3) for each in told]
    least, most = ([_value(element, each.get(key)) for each in told] for key in (6, 5))
    return Footed(
        kind,
        optional,
        None if None in nulls else sum(nulls),
        None if None in least else min(least),
        None if None in most else max(most),
    )


def _value(element: dict[int, Any], raw: object) -> Any:
    """Return a number of the statistics; None for other types, and for numbers in another encoding."""
    form = _NUMBERS.get(element.get(1, -1))
    if not form or _type(element) not in ("integer", "number") or element.get(6) == 5 or 5 in element.get(10, {}):
        return None
    if not isinstance(raw, bytes) or len(raw) != struct.calcsize(form):
        return None
    if element.get(6) in (11, 12, 13, 14):  # unsigned
        form = form.upper()
    return struct.unpack(form, raw)[0]


def bad_chunks(footer: Footer, end: int) -> Iterator[str]:
    """Yield problems with the places of the columns, whose pages must lie between the magic and the footer."""
    for each in footer.chunks:
        if not len(MAGIC) <= each.begin <= each.end <= end:
            yield f"expected {each.column} within {end:,} bytes, found it at {each.begin:,} to {each.end:,}"


def bad_page(chunk: Chunk, read: Callable[[int, int], bytes]) -> str:
    """Return the problem with the first page of a column, or ''. `read` takes an offset and a size."""
    content = read(chunk.begin, min(PAGE_HEADER, chunk.end - chunk.begin))
    try:
        page = Compact(content).struct(0)
        kind, size = int(page[1]), int(page[3])
    except BROKEN as error:
        return f"expected the first page of {chunk.column} at {chunk.begin:,}, found {type(error).__name__}"
    if not 0 <= kind <= 3 or not 0 <= size <= chunk.end - chunk.begin:
        return f"expected the first page of {chunk.column} at {chunk.begin:,}, found a page of {size:,} bytes"
    return ""
