"""A request and its answer, independent of the HTTP server."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import parse_qsl, unquote

from emulators.storage.common.errors import StorageError, bad_parameter, invalid_header, out_of_range

AHEAD_SECONDS = 2 * 365 * 86400  # beyond today, so that newer clients are accepted
VERSION = "2021-12-02"
OLDEST = "2009-09-19"
SECONDARY = "-secondary"


@dataclass(frozen=True)
class Call:
    """A request. `path` begins with the account and is still encoded. Header names are case-insensitive.

    A long body is in `stream` and not in `body`.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    stream: AsyncIterator[bytes] | None = None
    secure: bool = False  # whether the request used HTTPS
    at_host: bool = False  # whether the host has the account's name, not the path
    client: str = ""  # the client's address
    backslashes: bool = True  # whether names keep backslashes; blobs' names do not

    @property
    def account(self) -> str:
        return self.path[1:].partition("/")[0].removesuffix(SECONDARY)

    @property
    def secondary(self) -> bool:
        """Return whether the request is to the account's secondary region, which is read-only."""
        return self.path[1:].partition("/")[0].endswith(SECONDARY)

    @property
    def signed_path(self) -> str:
        """Return the path as the client sent it, which the signature covers."""
        return "/" + self.path[1:].partition("/")[2] if self.at_host else self.path

    @property
    def resource(self) -> str:
        """Return the decoded path after the account: `queue/messages`, `Tables`, or ''."""
        found = unquote(self.path[1:].partition("/")[2])
        return found if self.backslashes else found.replace("\\", "/")

    def text(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number from the query. Raises StorageError for any other text, and for a number outside
        the range."""
        value = self.query.get(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise bad_parameter(name, value, "Value must be a whole number.") from None
        if not least <= number <= most:
            raise out_of_range(name, number, least, most)
        return number


@dataclass(frozen=True)
class Answer:
    """The answer to a request. With `stream`, the body comes from the stream, and `headers` has Content-Length.
    `reason` is the text of the status line; '' is the usual text."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncGenerator[bytes, None] | None = None
    reason: str = ""


def checked_version(headers: Mapping[str, str], now: float) -> None:
    """Raise StorageError, 400, for an x-ms-version that is not a date, or not between OLDEST and today plus
    AHEAD_SECONDS."""
    text = headers.get("x-ms-version")
    latest = time.strftime("%Y-%m-%d", time.gmtime(now + AHEAD_SECONDS))
    if text is not None and not (re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) and OLDEST <= text <= latest):
        raise invalid_header("x-ms-version", text)


def parse_query(text: str) -> dict[str, str]:
    """Return the decoded parameters of a URL. A repeated name has its last value."""
    try:
        return dict(parse_qsl(text, keep_blank_values=True))
    except ValueError:
        raise StorageError(400, "InvalidUri", "The requested URI does not represent any resource.") from None


def moment(text: str) -> datetime:
    """Parse a time in ISO 8601, in UTC unless it names another zone. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def http_date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)
