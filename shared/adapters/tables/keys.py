"""Keys of table rows, as pure functions.

Azure's tables allow 1 KiB per key (512 characters), without slash, backslash, #, ? and control characters. They return
rows in the order of their keys, so a key here sorts like the thing that it names.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from shared.kernel.drop_key import DropKey

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"[0-9]{14}")  # more digits would be no valid time
_LAST_MILLISECOND = 10**14 - 1
LAST = EPOCH + timedelta(milliseconds=_LAST_MILLISECOND)  # the year 5138
_TOKEN_LIMIT = 220  # two tokens and a separator fit into a key
_TOKEN_START = 150  # characters kept of a longer token


def drop_key(key: DropKey) -> str:
    """Return the key of a drop. Different drops have different keys, which sort like the drops.

    For very long or non-ASCII names, at least the first 75 bytes determine the order.
    """
    return f"{token(key.route)}!{token(key.name)}"


def route_range(route: str) -> tuple[str, str]:
    """Return the range of the keys of a route's drops: from the first to before the second."""
    return f"{token(route)}!", f'{token(route)}"'


def token(text: str) -> str:
    """Return the text with each byte except ASCII letters and digits as a mark and two hex digits; cut and hashed if
    too long.

    The mark sorts where the byte sorts, so tokens sort like the texts' UTF-8 bytes.
    """
    encoded = "".join(map(_encode_byte, text.encode("utf-8", "surrogatepass")))
    if len(encoded) <= _TOKEN_LIMIT:
        return encoded
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{encoded[:_TOKEN_START]}={digest}"


def _encode_byte(byte: int) -> str:
    char = chr(byte)
    if byte < 128 and char.isalnum():
        return char
    mark = "-" if char < "0" else ":" if char < "A" else "_" if char < "a" else "~"
    return f"{mark}{byte:02X}"


def newest_first(at: datetime, name: str = "") -> str:
    """Return a key for sorting later times first, to the millisecond; `name` makes the key unique."""
    return f"{_LAST_MILLISECOND - (at - EPOCH) // timedelta(milliseconds=1):014d}-{name}"


def time_of(inverted: str) -> datetime:
    """Return the time of a key's digits; the epoch for any other text."""
    return LAST - timedelta(milliseconds=int(inverted)) if _DIGITS.fullmatch(inverted) else EPOCH
