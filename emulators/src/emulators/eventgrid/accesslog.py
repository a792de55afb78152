"""Reads the blob service's access log: which lines mean that a blob was created, deleted or moved to another tier, and
where reading continues.

A line has Apache's common format: address, time in whole seconds, method, path and query as the client sent them,
status. A line has no headers, so it has no etag and no request id. The emulators' own service adds the blob's etag,
content type, size and kind. A line is enough to tell the operation. With neither `comp` nor `restype` in the query, a
PUT is Put Blob (answered 201) or Copy Blob (202), and a DELETE deletes the blob. `comp=blocklist` is Put Block List.
`comp=tier` is Set Blob Tier, which takes effect at once (200) or, out of the archive, later (202). Azurite's debug log
has more information, but its tens of lines per request would slow Azurite down, so we request the blob's properties
instead.

Azurite writes the line shortly after the client has its answer, but before it reads another request. So the line of our
own request follows the lines of all writes that were answered before we sent it, which makes the barrier exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qs, unquote

LINE = re.compile(
    rb'\S+ \S+ \S+ \[([^\]]+)\] "(PUT|DELETE) (\S+) HTTP/[\d.]+" (\d{3}) '
    rb'(?:- "(?P<etag>[^"]+)" "(?P<kind>[^"]*)" (?P<size>\d+) (?P<type>\w+))?'
)
CREATED = "Microsoft.Storage.BlobCreated"
DELETED = "Microsoft.Storage.BlobDeleted"
TIER_CHANGED = "Microsoft.Storage.BlobTierChanged"
INITIATED = "Microsoft.Storage.AsyncOperationInitiated"  # an archived blob's rehydration starts
# By method, `comp` and status: the operation's name in events, and the type of the event.
OPERATIONS = {
    ("PUT", "", "201"): ("PutBlob", CREATED),
    ("PUT", "", "202"): ("CopyBlob", CREATED),
    ("PUT", "blocklist", "201"): ("PutBlockList", CREATED),
    ("PUT", "tier", "200"): ("SetBlobTier", TIER_CHANGED),
    ("PUT", "tier", "202"): ("SetBlobTier", INITIATED),
    ("DELETE", "", "202"): ("DeleteBlob", DELETED),
}
SILENT = ("$logs", "$blobchangefeed")  # containers whose blobs fire no events in Azure
CHUNK = 1 << 18


@dataclass(frozen=True)
class Position:
    """The position up to which the log has been read. `began` is the time (Unix seconds) when the log's first line
    was read. A new log has a later `began`, so (began, offset) never decreases."""

    began: int
    offset: int


@dataclass(frozen=True)
class Line:
    text: bytes
    at: Position


@dataclass(frozen=True)
class BlobFacts:
    """The properties of a blob that its event contains."""

    etag: str
    content_type: str
    content_length: int
    blob_type: str


@dataclass(frozen=True)
class Write:
    """A change of a blob, and the type of its event.

    `path` is as the request sent it (percent-encoded, with the account); `container` and `blob` are decoded. `facts` is
    set if the log line has them.
    """

    api: str
    account: str
    container: str
    blob: str
    path: str
    time: datetime
    began: int
    offset: int
    facts: BlobFacts | None = None
    event: str = CREATED


def parse(line: Line) -> Write | None:
    """Parse a log line. Returns the change of a blob, or None for a request that causes no event, such as a failed
    request."""
    match = LINE.match(line.text)
    if match is None:
        return None
    when, method, target, status = (part.decode("latin-1") for part in match.groups()[:4])
    path, _, text = target.partition("?")
    query = parse_qs(text, keep_blank_values=True)
    operation = OPERATIONS.get((method, query.get("comp", [""])[0], status))
    account, container, blob = _names(path)
    if operation is None or not blob or container in SILENT or query.keys() & {"restype", "snapshot"}:
        return None
    time = datetime.strptime(when, "%d/%b/%Y:%H:%M:%S %z")
    api, event = operation
    return Write(api, account, container, blob, path, time, line.at.began, line.at.offset, _facts(match), event)


def _facts(match: re.Match[bytes]) -> BlobFacts | None:
    if match["etag"] is None:
        return None
    etag, kind, size, blob = (match[name].decode("latin-1") for name in ("etag", "kind", "size", "type"))
    return BlobFacts(f'"{etag}"', kind, int(size), blob)


def _names(path: str) -> tuple[str, str, str]:
    """Return the account, container and blob of a path. A blob directly under the account is in the container
    $root."""
    account, _, rest = path.removeprefix("/").partition("/")
    container, slash, blob = rest.partition("/")
    if not slash:
        container, blob = "$root", container
    return account, unquote(container), unquote(blob, errors="replace")


class Tail:
    """Reads a growing log from a position on. The file need not exist yet. A shorter file is a new log."""

    def __init__(self, path: Path, position: Position) -> None:
        self.path = path
        self.position = position

    def read(self, now: float) -> list[Line]:
        """Return the complete lines since the last call, from at most about CHUNK bytes. `now` (Unix seconds) dates
        a new log."""
        try:
            with self.path.open("rb") as log:
                if self.path.stat().st_size < self.position.offset:
                    self.position = Position(max(int(now), self.position.began + 1), 0)
                log.seek(self.position.offset)
                data = log.read(CHUNK)
                if data and b"\n" not in data:
                    data += log.readline()  # a line longer than CHUNK
        except FileNotFoundError:
            return []
        return self._lines(data[: data.rfind(b"\n") + 1])

    def _lines(self, data: bytes) -> list[Line]:
        began, offset = self.position.began, self.position.offset
        lines = []
        for text in data.splitlines(keepends=True):
            lines.append(Line(text, Position(began, offset)))
            offset += len(text)
        self.position = Position(began, offset)
        return lines


def end_of(path: Path, now: float) -> Position:
    """Return the position at the end of the log, because a subscription gets no events from before it was created."""
    return Position(int(now), path.stat().st_size if path.exists() else 0)
