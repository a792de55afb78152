"""Upload of a large file as a blob: blocks are uploaded in parallel, and blocks from an interrupted upload are
reused."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..parallel import in_parallel

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, ContentSettings

BLOCK = 16 << 20  # bytes
MOST_BLOCKS = 50_000  # of a blob, the limit of the storage
WORKERS = 4  # for one file; several files are uploaded at once


@dataclass(frozen=True)
class Block:
    """One block of the file. The id combines the position and the MD5 of the content: a block with other content has
    another id.
    """

    id: str
    offset: int
    size: int


def send(
    blob: BlobClient, path: Path, settings: ContentSettings, metadata: dict[str, str], progress: Callable[[int], None]
) -> None:
    """Upload the file in blocks, and commit the blob once all blocks are uploaded.

    The storage keeps uncommitted blocks for a week, so a repeated call uploads only the missing blocks.
    """
    from azure.storage.blob import BlobBlock

    blocks = list(_blocks(path))
    present = _present(blob)
    missing = [block for block in blocks if present.get(block.id) != block.size]
    progress(sum(block.size for block in blocks) - sum(block.size for block in missing))
    in_parallel(lambda block: _stage(blob, path, block, progress), missing, WORKERS)
    blob.commit_block_list([BlobBlock(block.id) for block in blocks], content_settings=settings, metadata=metadata)


def _blocks(path: Path) -> Iterator[Block]:
    size, total = BLOCK, path.stat().st_size
    while total > size * MOST_BLOCKS:
        size *= 2
    with path.open("rb") as content:
        for number, piece in enumerate(iter(lambda: content.read(size), b"")):
            digest = hashlib.md5(piece, usedforsecurity=False).hexdigest()
            yield Block(f"{number:05d}-{digest}", number * size, len(piece))


def _present(blob: BlobClient) -> dict[str, int]:
    """Return the sizes of the blob's uncommitted blocks, by block id."""
    from azure.core.exceptions import ResourceNotFoundError

    try:
        _, uncommitted = blob.get_block_list("uncommitted")
    except ResourceNotFoundError:
        return {}
    return {_readable(block.id): block.size for block in uncommitted}


def _readable(block_id: str) -> str:
    """Return the block id in this module's form. Some versions of the client return the id in Base64, as sent."""
    try:
        return base64.b64decode(block_id, validate=True).decode()
    except ValueError:
        return block_id


def _stage(blob: BlobClient, path: Path, block: Block, progress: Callable[[int], None]) -> None:
    with path.open("rb") as content:
        content.seek(block.offset)
        piece = content.read(block.size)
    blob.stage_block(block.id, piece, length=len(piece), validate_content=True)
    progress(block.size)
