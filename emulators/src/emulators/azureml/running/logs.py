"""Log files of a running job, copied to append blobs while they grow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from emulators.azureml.storage.blobs import PIECE, Blobs, Place

MANY_BLOCKS = 40_000  # an append blob has at most 50,000 blocks, so later copies are rare


@dataclass
class LogCopy:
    """One attempt's log file and the destination blob. The blob keeps the output of earlier attempts."""

    file: Path
    blob: Place
    copied: int = 0  # bytes of the file that the blob has
    length: int = 0  # of the blob
    blocks: int = 0

    async def open(self, blobs: Blobs) -> None:
        self.length = await blobs.open_log(self.blob)

    async def push(self, blobs: Blobs) -> None:
        """Append the file's new bytes to the blob. After a failure, the next push continues at the end of the blob."""
        with self.file.open("rb") as file:
            file.seek(self.copied)
            while piece := file.read(PIECE):
                length = await blobs.append(self.blob, piece, self.length)
                self.copied += length - self.length
                self.length = length
                self.blocks += 1
                file.seek(self.copied)
