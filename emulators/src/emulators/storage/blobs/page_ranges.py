"""The content of a page blob: pieces that cover the blob, some of which are holes. Pure.

A hole is a piece without an extent. Its extent is 0 where nothing was ever written. Otherwise it is a negative number,
different for each clearing, so that a comparison with a snapshot finds the cleared ranges. A hole's bytes are zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from emulators.storage.blobs.extents import Piece, part_of

PAGE = 512  # bytes


@dataclass(frozen=True)
class Range:
    """A range of bytes, `end` included, that was written or, in a comparison, cleared."""

    start: int
    end: int
    cleared: bool = False


def hole(length: int, clearing: int = 0) -> list[Piece]:
    """Return a hole of this length. `clearing` is 0 or the negative number of a clearing."""
    return [(clearing, 0, length)] if length else []


def size_of(pieces: Iterable[Piece]) -> int:
    return sum(length for _, _, length in pieces)


def with_range(pieces: list[Piece], begin: int, new: list[Piece]) -> list[Piece]:
    """Return the content with new pieces, starting at the byte `begin`."""
    end = begin + size_of(new)
    return _joined([*part_of(pieces, 0, begin), *new, *part_of(pieces, end, size_of(pieces) - end)])


def resized(pieces: list[Piece], size: int) -> list[Piece]:
    """Return the content truncated or extended with a hole to this size."""
    return _joined([*part_of(pieces, 0, size), *hole(max(0, size - size_of(pieces)))])


def written(pieces: list[Piece], before: list[Piece] | None = None) -> list[Range]:
    """Return the ranges with data. With `before`, return the ranges that were written or cleared since then."""
    found: list[Range] = []
    for start, extent in _spans(pieces, before):
        kind, last = extent[0] <= 0, found[-1] if found else None
        if kind and before is None:
            continue
        if last and last.end + 1 == start and last.cleared is kind:
            found[-1] = Range(last.start, start + extent[1] - 1, kind)
        else:
            found.append(Range(start, start + extent[1] - 1, kind))
    return found


def within(ranges: Iterable[Range], begin: int, end: int) -> list[Range]:
    """Return the parts of the ranges in the pages from byte `begin` to byte `end`, both included."""
    first, last = begin // PAGE * PAGE, end // PAGE * PAGE + PAGE - 1
    cut = (Range(max(one.start, first), min(one.end, last), one.cleared) for one in ranges)
    return [one for one in cut if one.start <= one.end]


def _spans(pieces: list[Piece], before: list[Piece] | None) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (start, (extent, length)) of the pieces. With `before`, yield only the parts that differ from it."""
    at, old = 0, list(reversed(before or []))
    for extent, offset, length in pieces:
        if before is None:
            yield at, (extent, length)
            at += length
            continue
        while length:
            then = old.pop() if old else (0, 0, length)
            step = min(length, then[2])
            if then[2] > step:
                old.append((then[0], then[1] + (step if then[0] > 0 else 0), then[2] - step))
            if then[:2] != (extent, offset):
                yield at, (extent, step)
            at, length = at + step, length - step
            offset += step if extent > 0 else 0


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces, with adjacent holes of the same clearing joined."""
    found: list[Piece] = []
    for extent, offset, length in pieces:
        if extent > 0:
            found.append((extent, offset, length))
        elif found and found[-1][0] == extent:
            found[-1] = (extent, 0, found[-1][2] + length)
        else:
            found.append((extent, 0, length))
    return found
