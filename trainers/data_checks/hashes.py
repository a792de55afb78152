"""Hashes of rows or images, to find equal items in several files, in bounded memory. Pure."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Iterable, Iterator

from .source import File

GZIP = 8  # assumed expansion factor of a gzip file

Packed = list[str]


class Hashes:
    """Hashes of the rows or images of one file, with their numbers.

    For large files, only the hashes divisible by `every` are kept, so the same rows are kept in all files: one in
    `every`.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._hashes, self._numbers = array("Q"), array("I")

    def add(self, content: bytes, number: int) -> None:
        digest = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
        if digest % self._every == 0:
            self._hashes.append(digest)
            self._numbers.append(number)

    def packed(self) -> Packed:
        """Return the hashes as text, for a check that continues in another process of the same kind of machine."""
        return [base64.b85encode(each.tobytes()).decode() for each in (self._hashes, self._numbers)]


def unpacked(packed: Packed) -> Iterator[tuple[int, int]]:
    """Yield the hashes and the numbers."""
    hashes, numbers = array("Q", base64.b85decode(packed[0])), array("I", base64.b85decode(packed[1]))
    return zip(hashes, numbers, strict=True)


def one_in(files: Iterable[File], compared: int) -> int:
    """Return n such that one in n of these files' rows or images has at most `compared` bytes in total."""
    return 1 + sum(file.size * (GZIP if file.path.lower().endswith(".gz") else 1) for file in files) // compared
