"""Download of a run's archive: parallel, with a check of each file against the manifest before the file gets its final
name.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Event, Lock
from typing import Any, Protocol

import httpx

from ..errors import CliError, Unreachable
from .api_outage import OutageMessages
from .client import Api, retry_unreachable

WORKERS = 16
CHUNK = 1 << 20  # bytes
PATIENCE_SECONDS = 30.0
MANIFEST = "manifest.json"
SEEN = ".fetched.json"
PARTIAL = 206

Progress = Callable[[int], None]  # receives the number of new bytes; negative if a download starts again


@dataclass(frozen=True)
class File:
    """One entry of a manifest, or of a model's signature. A signature has each file's SHA-256 but no sizes; `size` is
    then -1.

    `md5` is hexadecimal, and empty if the storage has none; then the etag is compared instead.
    """

    name: str
    size: int
    md5: str
    etag: str
    sha256: str = ""

    @property
    def kind(self) -> str:
        """Return the name of the hash function of the file's checksum: sha256 or md5."""
        return "sha256" if self.sha256 else "md5"

    @classmethod
    def of(cls, row: dict[str, Any]) -> File:
        return cls(str(row["name"]), int(row["size"]), str(row.get("md5") or ""), str(row.get("etag") or ""))


class Source(Protocol):
    """A place from which files are downloaded."""

    def artifact(self, run: str, name: str, offset: int = 0) -> AbstractContextManager[httpx.Response]:
        """Return the open download of one file from this byte offset on: status 206, or 200 with the whole file."""


@dataclass(frozen=True)
class Manifest:
    """The manifest of a run's archive: the files with their sizes and checksums, and the manifest's own bytes."""

    content: bytes
    files: list[File]

    @classmethod
    def of(cls, api: Api, run: str) -> Manifest:
        """Return the manifest of a run's archive. Raises CliError for a manifest that can't be read."""
        content = retry_unreachable(lambda: _content(api, run), PATIENCE_SECONDS, OutageMessages())
        try:
            return cls(content, [File.of(row) for row in json.loads(content)["files"]])
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise CliError(f"{MANIFEST} of {run} can't be read: {type(exc).__name__} {exc}.") from exc

    def keep(self, folder: Path) -> None:
        """Write the manifest into the folder of its files. Call this after the files were downloaded."""
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{MANIFEST}.{os.getpid()}.part"
        unfinished.write_bytes(self.content)
        unfinished.replace(folder / MANIFEST)


def _content(api: Api, run: str) -> bytes:
    with api.artifact(run, MANIFEST) as stream:
        return stream.read()


def chosen(files: list[File], only: list[str]) -> list[File]:
    """Return the files in these folders of the archive, or with these names. An empty `only` means every file."""
    prefixes = [part.strip("/") for part in only]
    return [f for f in files if not prefixes or any(f.name == w or f.name.startswith(f"{w}/") for w in prefixes)]


def fetch(source: Source, run: str, files: list[File], folder: Path, progress: Progress) -> list[File]:
    """Download these files of a run into the folder, and return the downloaded files.

    Files that are already there and whole are skipped. A file gets its final name only once its size and checksum match
    the manifest. After an interruption, the same call resumes the download, also in the middle of a file.
    """
    targets = [(file, _target(folder, file.name)) for file in files]
    download = _Download(source, run, progress, _Seen(folder), Event())
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(download.bring, file, target) for file, target in targets]
        try:
            return [file for file, new in zip(files, _results(jobs), strict=True) if new]
        finally:
            download.stopped.set()
            pool.shutdown(cancel_futures=True)


def _results(jobs: list[Future[bool]]) -> list[bool]:
    """Return every result, or raise the first error as soon as a job has failed."""
    done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
    for job in done:
        if error := job.exception():
            raise error
    return [job.result() for job in jobs]


def _target(folder: Path, name: str) -> Path:
    """Return the local path of a file of the archive. Raises CliError for a name that leads out of the folder on
    Windows or POSIX."""
    windows = PureWindowsPath(name)
    leads_out = ".." in windows.parts or windows.drive or windows.root or PurePosixPath(name).is_absolute()
    if not name or "\0" in name or leads_out:
        raise CliError(f"The manifest names {name!r}, which is outside the folder. Nothing was fetched.")
    return folder / name


class _Seen:
    """The MD5 of each downloaded file for which the storage has no MD5, by name and etag, stored in `.fetched.json`
    in the folder."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / SEEN, Lock()
        try:
            self._seen = dict(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError):
            self._seen = {}

    def md5(self, file: File) -> str:
        return str(self._seen.get(f"{file.name} {file.etag}", ""))

    def add(self, file: File, md5: str) -> None:
        with self._lock:
            self._seen[f"{file.name} {file.etag}"] = md5
            self._path.write_text(json.dumps(self._seen))


@dataclass(frozen=True)
class _Download:
    """The download of one run's files by many threads, until `stopped` is set."""

    source: Source
    run: str
    progress: Progress
    seen: _Seen
    stopped: Event

    def bring(self, file: File, target: Path) -> bool:
        """Download the file unless the folder has it. Returns whether the file was downloaded."""
        if _is_there(file, target, self.seen):
            self.progress(target.stat().st_size)
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        version = hashlib.sha256((file.sha256 or file.md5 or file.etag).encode()).hexdigest()[:12]
        unfinished = target.with_name(f".{target.name}.{version}.part")
        try:
            digest = retry_unreachable(lambda: _download(self, file, unfinished), PATIENCE_SECONDS, OutageMessages())
        except OSError as exc:
            if exc.errno != errno.ENOSPC:
                raise
            what = f"{file.name} ({file.size:,} bytes)" if file.size >= 0 else file.name
            where = f"No space is left in {target.parent} for {what}"
            raise CliError(
                f"{where}. Finished files stay. Free some space and run the same command again: it continues."
            ) from exc
        unfinished.replace(target)
        if not (file.sha256 or file.md5):
            self.seen.add(file, digest)
        return True


def _is_there(file: File, target: Path, seen: _Seen) -> bool:
    known = file.sha256 or file.md5 or seen.md5(file)
    if not known or not target.is_file() or file.size not in (-1, target.stat().st_size):
        return False
    with target.open("rb") as content:
        return hashlib.file_digest(content, file.kind).hexdigest() == known


def _download(download: _Download, file: File, path: Path) -> str:
    """Download the file to `path`, resuming after the bytes that `path` already holds. Returns the file's digest.

    Raises CliError, and removes `path`, if the content does not match the manifest. Two processes that write the same
    path write the same bytes.
    """
    # without the last byte, so that at least one byte is requested
    there = max(0, path.stat().st_size - 1) if path.exists() else 0
    digest, size = hashlib.new(file.kind, usedforsecurity=False), 0
    try:
        with (
            download.source.artifact(download.run, file.name, there) as stream,
            path.open("r+b" if there else "wb") as out,
        ):
            while stream.status_code == PARTIAL and size < there:
                chunk = out.read(min(CHUNK, there - size))
                digest.update(chunk)
                size += len(chunk)
            download.progress(size)
            for chunk in stream.iter_bytes(CHUNK):
                if download.stopped.is_set():
                    raise CliError("Stopped.")
                digest.update(chunk)
                size += out.write(chunk)
                download.progress(len(chunk))
            etag = stream.headers.get("etag", "")
    except Unreachable:
        download.progress(-size)
        raise
    if fault := _fault(file, size, digest.hexdigest(), etag):
        path.unlink()
        raise CliError(
            f"{file.name} of {download.run} does not match its manifest: {fault}. The download was discarded."
        )
    return digest.hexdigest()


def _fault(file: File, size: int, digest: str, etag: str) -> str:
    if file.sha256:
        return "" if digest == file.sha256 else f"SHA-256 {digest} instead of {file.sha256}"
    if size != file.size:
        return f"{size:,} bytes instead of {file.size:,}"
    if file.md5:
        return "" if digest == file.md5 else f"MD5 {digest} instead of {file.md5}"
    return "" if _bare(etag) == _bare(file.etag) else f"etag {etag} instead of {file.etag}"


def _bare(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')
