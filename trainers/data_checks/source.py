"""The source of a check: a list of files with sizes and MD5 sums, and ranges of their bytes."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

MARKERS = frozenset({"job.yaml", "job.yml", "job.json", "_SUCCESS"})  # files of a drop that are not data
LITTER = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"})
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")  # that a trainer unpacks
PACKED = (*ARCHIVES, ".7z", ".rar", ".bz2", ".xz", ".zst", ".tbz2", ".txz")  # names of any archive
CHUNK = 1 << 20  # bytes per read of a file


class File(NamedTuple):
    """A file of a data set: its path with slashes, its size in bytes, and its MD5 in hexadecimal ('' if unknown)."""

    path: str
    size: int
    md5: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Source(Protocol):
    """A data set that can be read. `whole`: reading everything takes only seconds."""

    @property
    def files(self) -> Iterable[File]: ...

    @property
    def whole(self) -> bool: ...

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`: fewer at the end of the file, none if the file is gone."""


def is_hidden(name: str) -> bool:
    """Return whether a name is hidden, or belongs to a file that Windows, macOS or an office program leaves behind."""
    return name.startswith((".", "__MACOSX", "~$")) or name.lower() in LITTER


def is_data(path: str) -> bool:
    """Return whether a path is data: not a marker in the top folder, and not hidden, as trainers see a folder."""
    return path not in MARKERS and not any(map(is_hidden, path.split("/")))


def chunks(source: Source, path: str, size: int) -> Iterator[bytes]:
    """Yield the content of a file of `size` bytes, in pieces."""
    for offset in range(0, size, CHUNK):
        piece = source.read(path, offset, min(CHUNK, size - offset))
        yield piece
        if len(piece) < min(CHUNK, size - offset):
            return


class Folder:
    """A folder of this machine, or one file. Files are read whole if all files together have at most `whole_bytes`.

    Only files of equal size can have the same content, so only these files have an MD5.
    """

    def __init__(self, root: Path, whole_bytes: int = 1 << 30, paths: Iterable[tuple[str, Path]] | None = None) -> None:
        listed = [("", root)] if root.is_file() else paths if paths is not None else _walk(root)
        named = {name or root.name: path for name, path in listed}
        self._paths = {name: path for name, path in named.items() if path.exists()}
        self.lost = sorted(named.keys() - self._paths.keys())  # broken links
        sizes = {name: path.stat().st_size for name, path in self._paths.items()}
        equal = Counter(sizes.values())
        self.whole = sum(sizes.values()) <= whole_bytes
        self.files: Sequence[File] = [
            File(name, size, _md5(self._paths[name]) if size and equal[size] > 1 else "")
            for name, size in sorted(sizes.items())
        ]

    def read(self, path: str, offset: int, size: int) -> bytes:
        with self._paths[path].open("rb") as file:
            file.seek(offset)
            return file.read(size)


def _walk(root: Path) -> Iterator[tuple[str, Path]]:
    for parent, _, names in os.walk(root):
        for name in names:
            if (path := Path(parent, name)).is_file() or not path.exists():
                yield path.relative_to(root).as_posix(), path


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
