"""Disk space reserved for deletions, so that blobs can be deleted on a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from emulators.storage.common.errors import StorageError

BYTES = 4 * 1024 * 1024


class Reserve:
    """A file in the state's folder whose space is freed when a deletion needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "reserve"
        self._kept = False
        self.keep()

    def keep(self) -> None:
        """Reserve the space, unless it is already reserved or the disk has no room for it."""
        if self._kept:
            return
        with suppress(OSError):
            with self._file.open("wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, BYTES)
                else:
                    file.write(bytes(BYTES))
            self._kept = True

    def spend(self) -> bool:
        """Free the reserved space. Returns whether any was reserved."""
        kept, self._kept = self._kept, False
        self._file.unlink(missing_ok=True)
        return kept


def is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, sqlite3.OperationalError) and "full" in str(error)


def disk_full(folder: Path | None) -> StorageError:
    sentence = f"There is no room left on the disk of {folder}. Delete something there or elsewhere, then try again."
    return StorageError(507, "InsufficientStorage", sentence)
