"""Azure Storage's CRC-64, which a client can use as a checksum instead of MD5. The speed is about 10 MB a second.

https://learn.microsoft.com/rest/api/storageservices/put-blob#request-headers-all-blob-types
"""

from __future__ import annotations

import base64

POLYNOMIAL = 0x9A6C9329AC4BC9B5  # reflected
ALL_ONES = 2**64 - 1


def _row(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = tuple(map(_row, range(256)))


class Crc64:
    """A hash with the interface of hashlib's hashes."""

    def __init__(self) -> None:
        self._value = ALL_ONES

    def update(self, data: bytes) -> None:
        value, table = self._value, TABLE
        for byte in data:
            value = table[(value ^ byte) & 255] ^ (value >> 8)
        self._value = value

    @property
    def text(self) -> str:
        """Return the checksum as in headers: eight bytes, lowest first, in base64."""
        return base64.b64encode((self._value ^ ALL_ONES).to_bytes(8, "little")).decode()
