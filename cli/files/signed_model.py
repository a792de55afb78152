"""Offline check of a folder against the signature in its model.sig.

Files are hashed in parallel, as fast as the disk or the cores allow. As the format demands, git's own files and the
paths that the signature lists to ignore may differ; a signed file is always checked.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import CliError, NotFound
from .model_signature import SIGNATURE, Rules, Signed, read, why_not_signed

LARGEST = 256 << 20  # bytes of model.sig, which has some 150 bytes per signed file
GIT = (".git", ".gitattributes", ".github", ".gitignore")  # ignored by the format, not signed


@dataclass(frozen=True)
class Problem:
    """A file that does not match the signature, or the signature itself, and the fault."""

    file: str
    what: str


@dataclass(frozen=True)
class Verified:
    """The result of a check. Without problems, every file is as the key's owner signed it."""

    signed: Signed
    problems: list[Problem]
    bytes: int
    seconds: float


def verify(folder: Path, keys: Mapping[str, bytes]) -> Verified:
    """Check that one of these keys (PEM by SHA-256) signed, and every file of the folder against the signature.

    Raises NotFound if the folder has no model.sig.
    """
    began = time.perf_counter()
    signed = read(_content(folder / SIGNATURE, folder))
    if why := why_not_signed(signed, keys):
        return Verified(signed, [Problem(SIGNATURE, why)], 0, time.perf_counter() - began)
    there = {piece.name: piece for path in _files(folder) for piece in _pieces(path, folder, signed.rules)}
    if signed.files.keys() == {"."} and len(there) == 1:  # releases up to 1.0.0 name the only file of a model like this
        (piece,) = there.values()
        there = {".": replace(piece, name=".")}
    added = {
        piece.path.relative_to(folder).as_posix() for name, piece in there.items() if name not in signed.files
    } - _ignored(folder, there, signed)
    problems = [Problem(name, "is missing") for name in sorted(signed.files.keys() - there.keys())]
    problems += [Problem(name, "was added after signing") for name in sorted(added)]
    names = sorted(signed.files.keys() & there.keys(), key=lambda name: -there[name].size)
    with ThreadPoolExecutor(_cores()) as threads:
        digests = dict(zip(names, threads.map(lambda name: _digest(there[name], signed.rules), names), strict=True))
    problems += [
        Problem(name, "differs from what was signed" if digests[name] else "is a link, not a file")
        for name in sorted(names)
        if digests[name] != signed.files[name]
    ]
    return Verified(signed, problems, sum(there[name].size for name in names), time.perf_counter() - began)


@dataclass(frozen=True)
class _Piece:
    """A file of the folder, or one of its shards: the bytes from `start` up to `start + size`."""

    name: str  # as in the signature
    path: Path
    start: int
    size: int


def _content(file: Path, folder: Path) -> bytes:
    if not file.is_file():
        raise NotFound(
            f"There is no {SIGNATURE} in {folder}. `fetch MODEL@ALIAS` downloads a model with its signature."
        )
    if file.stat().st_size > LARGEST:
        raise CliError(f"{file} is too large for a signature.", "bad_data")
    return file.read_bytes()


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file and link in the folder, at any depth, except the signature."""
    for path in folder.rglob("*"):
        if (path.is_symlink() or not path.is_dir()) and path != folder / SIGNATURE:
            yield path


def _pieces(path: Path, folder: Path, rules: Rules) -> Iterator[_Piece]:
    """Yield the parts of a file that have digests of their own. An empty file has no shard, as in the format."""
    name = path.relative_to(folder).as_posix()
    size = path.stat().st_size if path.exists() else 0
    if not rules.shard_bytes:
        yield _Piece(name, path, 0, size)
        return
    for start in range(0, size, rules.shard_bytes):
        end = min(start + rules.shard_bytes, size)
        yield _Piece(f"{name}:{start}:{end}", path, start, end - start)


def _ignored(folder: Path, there: dict[str, _Piece], signed: Signed) -> set[str]:
    """Return the names of the unsigned files that the format or the signature ignores."""
    roots = [each.rstrip("/") for each in (*GIT, *signed.rules.ignored)]
    names = {piece.path.relative_to(folder).as_posix() for piece in there.values()}
    return {name for name in names if any(name == root or name.startswith(f"{root}/") for root in roots if root)}


def _digest(piece: _Piece, rules: Rules) -> str:
    """Return the digest of a file or shard; '' for anything that the signature does not allow, such as a link."""
    if (piece.path.is_symlink() and not rules.allow_symlinks) or not piece.path.is_file():
        return ""
    if not piece.size:
        return hashlib.new(rules.hash_type).hexdigest()  # an empty file can't be mapped
    with (
        piece.path.open("rb") as content,
        mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
        view[piece.start : piece.start + piece.size] as part,
    ):
        # mapping makes no copy, and is a fifth faster than reading
        return hashlib.new(rules.hash_type, part).hexdigest()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
