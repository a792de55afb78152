"""The text of a log file: its encoding, and only the beginning and the end of a long file."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import IO

HEAD, TAIL = 8 << 20, 56 << 20  # bytes that are read of a longer file; diagnose_log examines fewer
CHUNK = 1 << 20
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE, MANY = 2_000, 0.2


def decoded(data: bytes) -> str:
    """Return the text of these bytes: UTF-8, or the UTF-16 that PowerShell writes with `>`. Other bytes are
    replaced.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    sample = data[:SAMPLE]
    if sample.count(0) > MANY * max(1, len(sample)):
        return data.decode("utf-16-le" if sample[1:2] == b"\0" else "utf-16-be", "replace")
    return data.decode("utf-8", "replace")


def log_text(path: Path) -> str:
    """Return the text of the file. In a file of more than HEAD + TAIL bytes, only the line ends of the middle remain.

    Raises OSError if the file can't be read.
    """
    with path.open("rb") as file:
        return decoded(_bytes(file, path.stat().st_size))


def _bytes(file: IO[bytes], size: int) -> bytes:
    if size <= HEAD + TAIL:
        return file.read(HEAD + TAIL)
    head, lines, left = file.read(HEAD), 0, size - HEAD - TAIL
    while left > 0 and (chunk := file.read(min(CHUNK, left))):
        lines, left = lines + chunk.count(b"\n"), left - len(chunk)
    return head + b"\n" * lines + file.read(TAIL)
