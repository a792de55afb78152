"""Bytes of a log over HTTP: the Range header (RFC 9110, section 14), and the headers with which a follower
continues.
"""

from __future__ import annotations

import re

from shared.kernel.reply import TEXT, Reply, problem
from shared.runs.views.logs import Chunk

_RANGE = re.compile(r"bytes=(\d{1,15})?-(\d{1,15})?")


def wanted_range(header: str | None) -> tuple[int | None, int | None] | None:
    """Return the first and last requested byte. An unreadable header, or a header with several ranges, is ignored."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if not match or not (match[1] or match[2]):
        return None
    first, last = (int(text) if text else None for text in match.groups())
    return None if first is not None and last is not None and first > last else (first, last)


def log_answer(chunk: Chunk, ranged: bool = False) -> Reply:
    """Return 200 with the bytes from the offset, 206 with a range of the log, or 416 for a range outside of the log."""
    headers = {
        "x-next-offset": str(chunk.next_offset),
        "x-log-complete": "true" if chunk.complete else "false",
        "x-ranks": ",".join(map(str, chunk.ranks)),
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-store",
    }
    if ranged and not chunk.data:
        headers["Content-Range"] = f"bytes */{chunk.size}"
        return problem(
            416, "no_such_range", f"The log has {chunk.size} bytes, and the range is outside the log.", headers
        )
    if ranged:
        headers["Content-Range"] = f"bytes {chunk.offset}-{chunk.next_offset - 1}/{chunk.size}"
    return Reply(chunk.data, 206 if ranged else 200, headers, TEXT)
