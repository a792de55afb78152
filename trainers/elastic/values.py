"""How keys and values are stored in a table: names without forbidden characters, and bytes in pieces of 64 KiB.

The limits are Azure's: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

ENTITY_BYTES = 2**20
PROPERTY_BYTES = 2**16
KEY_CHARS = 512  # 1 KiB of UTF-16, for a partition key and for a row key
# The maximum size of a row besides its value, by Azure's formula (`size` below): 4 bytes, two keys of 2 * 512, the
# properties Timestamp (34), expires (30), key (18 + 1,024) and writers (26 + 8,192), and 16 pieces of value (18 each).
SHOWN_KEY_BYTES = 1024
WRITERS_BYTES = 2**13
OVERHEAD = 4 + 4 * KEY_CHARS + 34 + 30 + (18 + SHOWN_KEY_BYTES) + (26 + WRITERS_BYTES) + 16 * 18
MAX_VALUE = (ENTITY_BYTES - OVERHEAD) // 1024 * 1024  # 1,036,288 bytes, the same for every key

_PIECES = [f"v{number}" for number in range(16)]
_UNSAFE = re.compile(rb"[^A-Za-z0-9._:-]")


def key_text(key: str | bytes, room: int = KEY_CHARS) -> str:
    r"""Return the name of a key inside the table: at most `room` (over 66) characters. No two keys share a name.

    Every byte except letters, digits and `._:-` becomes `~` and two hexadecimal digits, so the service's forbidden
    characters (/ \ # ? and control characters) never appear. A longer name ends in `~~` and the key's SHA-256.
    """
    raw = key.encode() if isinstance(key, str) else key
    text = _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], raw).decode("ascii")
    return text if len(text) <= room else f"{text[: room - 66]}~~{hashlib.sha256(raw).hexdigest()}"


def key_of(text: str) -> bytes:
    """Return the key with this name, unless the key was too long for a name."""
    return re.sub(rb"~([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), text.encode())


def pack(value: bytes) -> dict[str, bytes]:
    """Cut a value of at most MAX_VALUE bytes into the properties v0, v1, ... of 64 KiB."""
    count = max(1, -(-len(value) // PROPERTY_BYTES))
    return {_PIECES[i]: value[i * PROPERTY_BYTES : (i + 1) * PROPERTY_BYTES] for i in range(count)}


def unpack(row: Mapping[str, object]) -> bytes:
    """Return the value cut by `pack`."""
    return b"".join(piece for name in _PIECES if isinstance(piece := row.get(name), bytes))


def size(row: Mapping[str, object]) -> int:
    """Return Azure's size of a row with binary properties and one date (`expires`), Timestamp included, as counted
    towards ENTITY_BYTES.

    Azure's formula: 4 + 2 * characters of both keys + for each property 8 + 2 * characters of its name + its data,
    which is 8 for a date and 4 + length for bytes.
    """
    keys = 2 * (len(str(row["PartitionKey"])) + len(str(row["RowKey"])))
    properties = {name: data for name, data in row.items() if name not in ("PartitionKey", "RowKey")}
    data = sum(8 + 2 * len(name) + (4 + len(v) if isinstance(v, bytes) else 8) for name, v in properties.items())
    return 4 + keys + data + 34
