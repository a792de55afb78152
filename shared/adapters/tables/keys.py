"""Keys of table rows, as pure functions.

Azure's tables allow 1 KiB a key (512 characters), and neither slash, backslash, #, ? nor control characters. They give
rows in the order of their keys, so a key here sorts as the thing it names.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from shared.kernel.drop_key import DropKey

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"[0-9]{14}")  # more would be no time that there is
_LAST_MILLISECOND = 10**14 - 1
LAST = EPOCH + timedelta(milliseconds=_LAST_MILLISECOND)  # in the year 5138
_TOKEN_LIMIT = 220  # two tokens and a separator fit into a key
_TOKEN_START = 150  # of a name whose token would be longer


def drop_key(key: DropKey) -> str:
    """The key of a drop. Different drops have different keys, in the order of the drops (of the first 75 bytes at
    least, where names are very long or foreign)."""
    return f"{token(key.route)}!{token(key.name)}"


def route_range(route: str) -> tuple[str, str]:
    """The keys of a route's drops are from the first of these to before the second."""
    return f"{token(route)}!", f'{token(route)}"'


def token(text: str) -> str:
    """The text with all but ASCII letters and digits as a mark and two hex digits a byte; cut and hashed if too long.

    The mark stands in the sort order where the byte does, so tokens sort as the texts' UTF-8 bytes.
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
    """A key that sorts later times first, to the millisecond; `name` makes it unique."""
    return f"{_LAST_MILLISECOND - (at - EPOCH) // timedelta(milliseconds=1):014d}-{name}"


def time_of(inverted: str) -> datetime:
    """The time that the digits of such a key mean; the epoch for other text."""
    return LAST - timedelta(milliseconds=int(inverted)) if _DIGITS.fullmatch(inverted) else EPOCH
