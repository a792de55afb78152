"""An archive as a data set: its entries are the files. No entry is unpacked to a file of its own.

A zip is read through its table of contents. A tar is read once from its beginning, and the content of its entries is
kept in one temporary file of at most SPOOLED bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO

from .findings import DataError
from .source import ARCHIVES, CHUNK, File, Source

SPOOLED = 512 << 20  # bytes of a tar's entries in the temporary file
MOST_ENTRIES = 1_000_000
BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError,
          NotImplementedError, OSError, ValueError, OverflowError)  # fmt: skip
_ENCRYPTED = 0x1
_LINK = 0o120000


class Ranges(io.RawIOBase):
    """A file of a source as a seekable stream."""

    def __init__(self, source: Source, path: str, size: int) -> None:
        self._source, self._path, self._size, self._at = source, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        piece = self._source.read(self._path, self._at, min(len(view), max(0, self._size - self._at)))
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def stream(source: Source, path: str, size: int) -> io.BufferedReader:
    """Return the file as a buffered stream."""
    return io.BufferedReader(Ranges(source, path, size), CHUNK)


def is_archive(path: str) -> bool:
    return path.lower().endswith(ARCHIVES)


class Entries:
    """The entries of an archive, as a source. `problems` lists entries that no trainer unpacks, with the reason.
    `twice` lists names that several entries have; the last of these entries counts."""

    whole = True

    def __init__(
        self,
        files: Sequence[File],
        read: Callable[[str, int, int], bytes],
        problems: Sequence[str],
        close: Callable[[], object],
        twice: Sequence[str] = (),
    ) -> None:
        self.files, self._read, self.problems, self.close, self.twice = files, read, problems, close, twice

    def read(self, path: str, offset: int, size: int) -> bytes:
        return self._read(path, offset, size)


def opened(source: Source, path: str, size: int, late: Callable[[], bool]) -> Entries:
    """Return the entries of the archive. Raises DataError if the archive is broken, or TimeoutError once `late`
    returns true."""
    try:
        if path.lower().endswith(".zip"):
            return _zip(stream(source, path, size))
        return _tar(stream(source, path, size), late)
    except TimeoutError:
        raise
    except BROKEN as error:
        raise DataError(f"{path}: expected a readable archive, found {type(error).__name__}: {error}") from error


def _leads_out(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return ".." in parts or not parts[0] or parts[0].endswith(":")


def _zip(raw: IO[bytes]) -> Entries:
    archive = zipfile.ZipFile(raw)
    infos = archive.infolist()
    if len(infos) > MOST_ENTRIES:
        raise ValueError(f"more than {MOST_ENTRIES:,} entries")
    problems = [f"{each.filename}: it has a password" for each in infos if each.flag_bits & _ENCRYPTED]
    problems += [f"{each.filename}: it is a link" for each in infos if each.external_attr >> 16 & 0o170000 == _LINK]
    problems += [f"{each.filename}: its name leads out of the archive" for each in infos if _leads_out(each.filename)]
    counts = Counter(each.filename for each in infos)
    by_name = {each.filename: each for each in infos if not each.is_dir() and not each.flag_bits & _ENCRYPTED}
    # Size and CRC-32 together stand for the MD5, which a zip lacks
    files = [File(name, each.file_size, f"crc{each.CRC:08x}") for name, each in sorted(by_name.items())]

    def read(path: str, offset: int, size: int) -> bytes:
        try:
            with archive.open(by_name[path]) as entry:
                entry.seek(offset)
                return entry.read(size)
        except BROKEN as error:
            raise DataError(f"{path}: expected a whole entry of the archive, found {error}") from error

    return Entries(files, read, problems, archive.close, [name for name, count in counts.items() if count > 1])


def _tar(raw: IO[bytes], late: Callable[[], bool]) -> Entries:
    spool = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the entries)
    try:
        files, places, problems, twice = _walk(raw, spool, late)
    except BaseException:
        spool.close()
        raise

    def read(path: str, offset: int, size: int) -> bytes:
        begin, length = places[path]
        spool.seek(begin + offset)
        return spool.read(max(0, min(size, length - offset)))

    return Entries(files, read, problems, spool.close, twice)


def _walk(
    raw: IO[bytes], spool: IO[bytes], late: Callable[[], bool]
) -> tuple[list[File], dict[str, tuple[int, int]], list[str], list[str]]:
    """Return the files of a tar, their places in the temporary file, the entries that no trainer unpacks, and the
    names that occur twice."""
    twice: list[str] = []
    files: dict[str, File] = {}
    places: dict[str, tuple[int, int]] = {}
    problems: list[str] = []
    with tarfile.open(fileobj=raw, mode="r|*", bufsize=CHUNK) as tar:
        for entry in tar:
            if late():
                raise TimeoutError
            name = entry.name.removeprefix("./")
            if not (entry.isfile() or entry.isdir()):
                problems.append(f"{entry.name}: it is a link or a device")
            elif name and _leads_out(name):
                problems.append(f"{entry.name}: its name leads out of the archive")
            elif entry.isfile() and (content := tar.extractfile(entry)):
                if name in files:
                    twice.append(name)
                places[name] = spool.tell(), entry.size
                files[name] = File(name, entry.size, _spooled(content, spool))
            if len(files) > MOST_ENTRIES:
                raise ValueError(f"more than {MOST_ENTRIES:,} entries")
    return sorted(files.values()), places, problems, twice


def _spooled(content: IO[bytes], spool: IO[bytes]) -> str:
    """Copy the entry to the temporary file; return its MD5. Raises Overfull when the file is full."""
    digest = hashlib.md5(usedforsecurity=False)
    while piece := content.read(CHUNK):
        digest.update(piece)
        spool.write(piece)
        if spool.tell() > SPOOLED:
            raise Overfull
    return digest.hexdigest()


class Overfull(Exception):
    """The archive holds more than a check unpacks."""
