"""Operations on page blobs: put, clear and list pages. Resizing and sequence numbers are properties (operations.py).

https://learn.microsoft.com/rest/api/storageservices/put-page
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from emulators.storage.blobs import headers, page_ranges, xml
from emulators.storage.blobs.conditions import not_met
from emulators.storage.blobs.extents import Piece, Upload
from emulators.storage.blobs.kept import TIME
from emulators.storage.blobs.model import Blob
from emulators.storage.blobs.page_ranges import PAGE, Range
from emulators.storage.blobs.requests import Operations, Target, invalid_type, not_here
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, invalid_header, missing_header, out_of_range
from emulators.storage.common.service import XML

MOST_WRITTEN = 4 * 1024 * 1024  # bytes of one request
LARGEST = 8 * 1024**4  # bytes of a page blob
MOST_RANGES = 10_000  # of one answer
SEQUENCE = "x-ms-blob-sequence-number"
ACTION = "x-ms-sequence-number-action"
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "x-ms-if-sequence-number-le": lambda its, given: its <= given,
    "x-ms-if-sequence-number-lt": lambda its, given: its < given,
    "x-ms-if-sequence-number-eq": lambda its, given: its == given,
}


class PageOperations(Operations):
    async def put(self, call: Call) -> Answer:
        """Write or clear a range of pages."""
        action = call.headers.get("x-ms-page-write", "").lower()
        if action not in ("update", "clear"):
            raise invalid_header("x-ms-page-write", action)
        target, (begin, length) = self.writable(call)
        if action == "clear":
            return self._written(target, begin, page_ranges.hole(length, self._blobs.new_clearing()), {})
        if length > MOST_WRITTEN:
            raise StorageError(413, "RequestBodyTooLarge", f"One request writes at most {MOST_WRITTEN} bytes of pages.")
        upload = await self._requests.received(call)
        if upload.size != length:
            raise invalid_header("Content-Length", upload.size)
        target, _ = self.writable(call)  # checked again, because the blob may have changed meanwhile
        return self._written(target, begin, upload, headers.hashes(call, upload))

    def from_source(self, call: Call, pieces: list[Piece], told: dict[str, str]) -> Answer:
        """Write pages with the bytes of another blob. `told` are the hashes for the answer."""
        target, (begin, length) = self.writable(call)
        if page_ranges.size_of(pieces) != length:
            raise invalid_header("x-ms-source-range", call.headers.get("x-ms-source-range", ""))
        return self._written(target, begin, pieces, told)

    def writable(self, call: Call) -> tuple[Target, tuple[int, int]]:
        """Return the page blob, and the first byte and length of the range to write. Raises StorageError."""
        target = self._requests.writable(call, "w")
        check_kind(target.there)
        self._requests.check_encryption(call, target)
        for name, holds in COMPARED.items():
            given = headers.whole_number(call, name)
            if given is not None and not holds(target.there.sequence, given):
                raise not_met("SequenceNumberConditionNotMet")
        return target, _range(call, target.there.size)

    def _written(self, target: Target, begin: int, content: Upload | list[Piece], told: dict[str, str]) -> Answer:
        made = replace(target.there, etag=self._blobs.new_etag(), modified=self._blobs.clock())
        self._blobs.write_pages(target.container.id, target.name, made, begin, content)
        found = {**headers.version(made), SEQUENCE: str(made.sequence), **told}
        return Answer(201, headers={**found, "x-ms-request-server-encrypted": "true"})

    def ranges(self, call: Call) -> Answer:
        """List the ranges with data, or the ranges that differ from an earlier snapshot."""
        if "x-ms-previous-snapshot-url" in call.headers:
            raise not_here("managed disks")
        target = self._requests.readable(call, "r")
        check_kind(target.there)
        found = page_ranges.written(self._requests.content(target).pieces, self._before(call, target))
        if asked := headers.byte_range(call, target.there.size):
            found = page_ranges.within(found, asked[0], asked[0] + asked[1] - 1)
        shown, following = _page(call, found)
        told = {**headers.version(target.there), "x-ms-blob-content-length": str(target.there.size)}
        return Answer(200, xml.page_list(shown, following), {**told, **XML})

    def _before(self, call: Call, target: Target) -> list[Piece] | None:
        """Return the content of the snapshot to compare with, or None. Raises StorageError, 400 and 409."""
        time = call.query.get("prevsnapshot")
        if time is None:
            return None
        if not TIME.fullmatch(time):
            raise bad_parameter("prevsnapshot", time, "It is a time such as 2024-01-31T12:00:00.0000000Z.")
        if target.snapshot and target.snapshot < time:
            sentence = "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
            raise StorageError(400, "PreviousSnapshotCannotBeNewer", sentence)
        if self._blobs.find(target.container.id, target.name, time) is None:
            raise StorageError(409, "PreviousSnapshotNotFound", "The previous snapshot is not found.")
        return self._blobs.content(target.container.id, target.name, time).pieces


def check_kind(blob: Blob) -> None:
    """Raise StorageError, 409, unless the blob is a page blob."""
    if blob.kind != "PageBlob":
        raise invalid_type()


def checked_size(call: Call) -> int | None:
    """Return the size of a page blob in a request, or None. Raises StorageError, 400."""
    size = headers.whole_number(call, "x-ms-blob-content-length")
    if size is not None and (not 0 <= size <= LARGEST or size % PAGE):
        raise invalid_header("x-ms-blob-content-length", size)
    return size


def new_size(call: Call) -> int:
    """Return the size of a new page blob. Raises StorageError, 400."""
    if (size := checked_size(call)) is None:
        raise missing_header("x-ms-blob-content-length")
    return size


def sequence_number(call: Call) -> int | None:
    number = headers.whole_number(call, SEQUENCE)
    if number is not None and number < 0:
        raise invalid_header(SEQUENCE, number)
    return number


def renumbered(call: Call, now: int) -> int:
    """Return the sequence number after the request's action. Raises StorageError, 400."""
    action, given = call.headers.get(ACTION, "").lower(), sequence_number(call)
    if not action and given is None:
        return now
    if action == "increment" and given is None:
        return now + 1
    if action not in ("max", "update"):
        raise invalid_header(ACTION, action)
    if given is None:
        raise missing_header(SEQUENCE)
    return max(now, given) if action == "max" else given


def _range(call: Call, size: int) -> tuple[int, int]:
    """Return the first byte and the length of the range to write. Raises StorageError, 400 and 416."""
    text = call.headers.get("x-ms-range") or call.headers.get("Range") or ""
    match = headers.RANGE.fullmatch(text.strip())
    if match is None or not match[2]:
        raise invalid_header("Range", text)
    begin, end = int(match[1]), int(match[2])
    if begin % PAGE or (end + 1) % PAGE or end < begin or end >= size:
        raise StorageError(416, "InvalidPageRange", "The page range specified is invalid.")
    return begin, end + 1 - begin


def _page(call: Call, found: list[Range]) -> tuple[list[Range], str]:
    """Return the ranges of one answer, and the marker of the next. Raises StorageError, 400."""
    limit, marker = call.query.get("maxresults", str(MOST_RANGES)), call.query.get("marker") or "0"
    if not limit.isascii() or not limit.isdigit() or int(limit) < 1:
        raise out_of_range("maxresults", limit, 1, MOST_RANGES)
    if not marker.isascii() or not marker.isdigit():
        raise bad_parameter("marker", marker, "It is the NextMarker of an earlier answer.")
    rest = [one for one in found if one.start >= int(marker)]
    most = min(int(limit), MOST_RANGES)
    return rest[:most], str(rest[most].start) if len(rest) > most else ""
