"""The code snapshot that travels to the nodes: its files, and the digests that name its content."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest_files(folder: Path) -> str:
    """A hash over the names and contents of the snapshot's files: the code asset's version."""
    digest = hashlib.sha256()
    for file in snapshot_files(folder):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def digest_environment(trainers: Path) -> str:
    """A hash over the files that describe the nodes' environment."""
    digest = hashlib.sha256()
    for name in ("environment.yaml", "conda.yaml"):
        digest.update((trainers / name).read_bytes())
    return digest.hexdigest()


def snapshot_files(folder: Path) -> list[Path]:
    """The files that travel to the nodes: all but caches and hidden ones, by name."""
    files = (p for p in folder.rglob("*") if p.is_file())
    return sorted(p for p in files if not any(s.startswith((".", "__pycache__")) for s in p.relative_to(folder).parts))
