"""Reads a dropped data set, and writes each result file whole or not at all.

A data set is a folder or one archive. The content of an archive is not trusted: members are unpacked one by one, only
plain files inside the target folder are written, and the total size is limited.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from data_checks.findings import DataError as DataError
from data_checks.names import locate
from data_checks.source import ARCHIVES, MARKERS, is_hidden

MAX_BYTES = 4 * 2**30
MAX_MEMBERS = 1_000_000
CHUNK = 2**20
# The errors that broken archives raise; the last three mean that a name is both a file and a folder.
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)


@contextmanager
def opened(data: Path, max_bytes: int = MAX_BYTES) -> Iterator[Path]:
    """Yield a folder with the data set: `data` itself, or a temporary folder with its unpacked archive.

    An archive is given by its path, or is the only file of the folder apart from markers. Each process unpacks for
    itself. Raises DataError for a path that does not exist, and for an archive that is broken or unsafe to unpack.
    """
    if not data.exists():
        raise DataError(f"{data}: expected a folder or an archive, found nothing")
    archive = data if data.is_file() else _only_archive(data)
    if archive is None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="dataset-") as folder:
        unpack(archive, Path(folder), max_bytes)
        yield Path(folder)


def _only_archive(folder: Path) -> Path | None:
    files = [path for path in folder.iterdir() if path.name not in MARKERS and not is_hidden(path.name)]
    return files[0] if len(files) == 1 and files[0].is_file() and files[0].name.lower().endswith(ARCHIVES) else None


def find(folder: Path, wanted: dict[str, str]) -> dict[str, Path]:
    """Return the paths of the `wanted` files, all from one folder: `folder` itself or a sub-folder.

    See data_checks.names.locate.
    """
    paths = (path.relative_to(folder).as_posix() for path in below(folder))
    return {name: folder / path for name, path in locate(paths, wanted, str(folder)).items()}


def below(folder: Path) -> Iterator[Path]:
    """Yield every file below `folder`, at any depth."""
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


@dataclass(frozen=True)
class _Member:
    """One entry of an archive of any format. `kind` is "file", "folder", or the name of another kind."""

    name: str
    kind: str
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Unpack a .zip, .tar, .tar.gz or .tgz into `folder`.

    Raises DataError, before anything is written outside `folder` or beyond `max_bytes`, for names that lead out of the
    folder, for links and devices, for passwords, for more than MAX_MEMBERS entries, and for a broken archive.
    """
    if not archive.name.lower().endswith(ARCHIVES):
        raise DataError(
            f"{archive}: expected a folder or an archive ({', '.join(ARCHIVES)}), found another kind of file"
        )
    room = max_bytes
    try:
        for count, member in enumerate(_members(archive)):
            if count >= MAX_MEMBERS:
                raise DataError(f"{archive}: expected at most {MAX_MEMBERS:,} entries, found more")
            room -= _extract(archive, member, folder, room)
            if room < 0:
                raise DataError(f"{archive}: expected at most {max_bytes:,} bytes of files, found more")
    except BROKEN as error:
        raise DataError(f"{archive}: expected a readable archive, found {type(error).__name__}: {error}") from error


def _members(archive: Path) -> Iterator[_Member]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                yield _Member(info.filename, _zip_kind(info), partial(zipped.open, info))
        return
    with tarfile.open(archive) as tar:
        for entry in tar:
            kind = "file" if entry.isfile() else "folder" if entry.isdir() else _tar_kind(entry)
            yield _Member(entry.name, kind, partial(tar.extractfile, entry))


def _tar_kind(entry: tarfile.TarInfo) -> str:
    return f"a link to {entry.linkname!r}" if entry.issym() or entry.islnk() else "a device"


def _zip_kind(info: zipfile.ZipInfo) -> str:
    if info.is_dir():
        return "folder"
    if info.flag_bits & 0x1:
        return "a file with a password"
    # A zip made on Unix keeps the file's mode in the upper half; a link's content is its target.
    return "a link" if stat.S_ISLNK(info.external_attr >> 16) else "file"


def _extract(archive: Path, member: _Member, folder: Path, room: int) -> int:
    """Write one member, and return the size in bytes. Stops one chunk after `room` is used up."""
    target = _inside(archive, member.name, folder)
    if member.kind == "folder":
        target.mkdir(parents=True, exist_ok=True)
        return 0
    if member.kind != "file":
        raise DataError(f"{archive}: expected files and folders only, found {member.name!r}, which is {member.kind}")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    assert source is not None  # tarfile gives None for links and folders only
    size = 0
    with source, target.open("wb") as out:
        while size <= room and (chunk := source.read(CHUNK)):
            size += out.write(chunk)
    return size


def _inside(archive: Path, name: str, folder: Path) -> Path:
    """Return the path of a member below `folder`. Raises DataError if the name leads out of the folder on any
    system."""
    windows = PureWindowsPath(name)
    if ".." in windows.parts or windows.drive or windows.root or PurePosixPath(name).is_absolute():
        raise DataError(f"{archive}: expected names inside the archive, found {name!r}, which points outside")
    return folder / name


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file replaces `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
