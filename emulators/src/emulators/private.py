"""Files that only their owner can read, because configurations contain keys and logs contain signed addresses."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO

IS_WINDOWS = os.name == "nt"
# For Popen: a child's files are private too. Windows has no umask, and Popen requires -1 there.
PRIVATE_UMASK = -1 if IS_WINDOWS else 0o077


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step. Only the owner can read the file, from the first byte on."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with open(scratch, "w", encoding="utf-8", opener=_private) as out:  # Path.open takes no opener
        out.write(text)
    scratch.replace(path)


def private_append(path: Path) -> BinaryIO:
    """Open a log for appending, readable by the owner only."""
    out = open(path, "ab", opener=_private)  # noqa: SIM115
    if not IS_WINDOWS:
        os.fchmod(out.fileno(), 0o600)
    return out


def private_folder(path: Path) -> None:
    """Create a missing folder, and deny other users access to it. Raises PermissionError for another user's folder."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def remove_folder(folder: Path) -> None:
    """Remove the folder and its content, including write-protected parts. Files that can't be deleted stay, without
    an error."""
    unlock(folder)
    shutil.rmtree(folder, ignore_errors=True)


def unlock(folder: Path) -> None:
    """Allow the owner to write to the folder and to every folder inside."""
    for path, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            Path(path).chmod(0o700)
