"""Hash blobs in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from shared.kernel.errors import Conflict
from shared.kernel.storage import Blobs

PIECE = 16 << 20  # bytes read at once
MOST_DATA_BYTES, MOST_DATA_FILES = 2 << 30, 5_000  # larger data are identified by etags and MD5s


def sha256_of(blobs: Blobs, container: str, name: str, size: int, md5: str = "") -> str:
    """Return the SHA-256 of a blob, in bounded memory. Raises Conflict if size or MD5 differ from the record."""
    digest, check = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    for piece in _pieces(blobs, container, name, size):
        digest.update(piece)
        check.update(piece)
    if md5 and check.hexdigest() != md5:
        raise Conflict(f"{container}/{name} has MD5 {check.hexdigest()}; it was recorded with {md5}.", "altered")
    return digest.hexdigest()


def _pieces(blobs: Blobs, container: str, name: str, size: int) -> Iterator[bytes]:
    offset = 0
    while offset < size:
        piece = blobs.read_from(container, name, offset, min(PIECE, size - offset))
        if not piece:
            break
        offset += len(piece)
        yield piece
    if offset < size:
        raise Conflict(f"{container}/{name} has {offset} bytes; it was recorded with {size}.", "altered")
