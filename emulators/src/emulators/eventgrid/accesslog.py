"""The blob service's access log: which lines tell of a blob that was created, and reading on from where we stopped.

A line is Apache's common format: address, time in whole seconds, method, path and query as sent, status. It holds no
headers, hence no etag and no request id; the emulators' own service adds etag, content type, size and kind of the
blob. It is enough to tell the operation: with neither `comp` nor `restype` in the
query a PUT is Put Blob (answered 201) or Copy Blob (202), and `comp=blocklist` is Put Block List. Azurite's debug log
knows more, at tens of lines a request; it would slow Azurite down, so we ask for the blob's properties instead.

Azurite writes the line a moment after the client has its answer, but before it reads another request. So a request of
our own shows up in the log after every write that was answered before it was sent: that makes the barrier exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qs, unquote

LINE = re.compile(
    rb'\S+ \S+ \S+ \[([^\]]+)\] "PUT (\S+) HTTP/[\d.]+" (\d{3}) '
    rb'(?:- "(?P<etag>[^"]+)" "(?P<kind>[^"]*)" (?P<size>\d+) (?P<type>\w+))?'
)
SILENT = ("$logs", "$blobchangefeed")  # containers whose blobs fire no events in Azure
CHUNK = 1 << 18


@dataclass(frozen=True)
class Position:
    """How far the log is read. `began` is when its first line was seen (Unix seconds): it grows when the log is
    replaced by a new one, so that (began, offset) never goes back."""

    began: int
    offset: int


@dataclass(frozen=True)
class Line:
    text: bytes
    at: Position


@dataclass(frozen=True)
class BlobFacts:
    """A blob's properties that an event tells."""

    etag: str
    content_type: str
    content_length: int
    blob_type: str


@dataclass(frozen=True)
class Write:
    """A blob that was created or replaced. `path` is as it was sent (percent-encoded, with the account); `container`
    and `blob` are decoded. `facts` are there if the line has them."""

    api: str
    account: str
    container: str
    blob: str
    path: str
    time: datetime
    began: int
    offset: int
    facts: BlobFacts | None = None


def parse(line: Line) -> Write | None:
    """The write that a line tells of; None for every other request, a failed one too."""
    match = LINE.match(line.text)
    if match is None:
        return None
    when, target, status = (part.decode("latin-1") for part in match.groups()[:3])
    path, _, query = target.partition("?")
    api = _api(parse_qs(query, keep_blank_values=True), status)
    account, container, blob = _names(path)
    if api is None or not blob or container in SILENT:
        return None
    time = datetime.strptime(when, "%d/%b/%Y:%H:%M:%S %z")
    return Write(api, account, container, blob, path, time, line.at.began, line.at.offset, _facts(match))


def _facts(match: re.Match[bytes]) -> BlobFacts | None:
    if match["etag"] is None:
        return None
    etag, kind, size, blob = (match[name].decode("latin-1") for name in ("etag", "kind", "size", "type"))
    return BlobFacts(f'"{etag}"', kind, int(size), blob)


def _api(query: dict[str, list[str]], status: str) -> str | None:
    if "restype" in query:
        return None
    match query.get("comp", [""])[0], status:
        case "", "201":
            return "PutBlob"
        case "", "202":
            return "CopyBlob"
        case "blocklist", "201":
            return "PutBlockList"
    return None


def _names(path: str) -> tuple[str, str, str]:
    """Account, container and blob of a path. A blob directly under the account is in the container $root."""
    account, _, rest = path.removeprefix("/").partition("/")
    container, slash, blob = rest.partition("/")
    if not slash:
        container, blob = "$root", container
    return account, unquote(container), unquote(blob, errors="replace")


class Tail:
    """Reads a growing log from a position on. The file may not exist yet; a shorter file is a new log."""

    def __init__(self, path: Path, position: Position) -> None:
        self.path = path
        self.position = position

    def read(self, now: float) -> list[Line]:
        """The complete lines since the last call, some CHUNK of bytes at most. `now` (Unix seconds) dates a new log."""
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
    """The position after everything that is in the log now: events begin with the subscription, not with history."""
    return Position(int(now), path.stat().st_size if path.exists() else 0)
