"""The code snapshot for the nodes: the files, and digests of the content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shared.kernel.errors import BadInput

NAMED = 5


def digest_files(folder: Path) -> str:
    """A hash over the names and contents of the snapshot's files: the code asset's version."""
    digest = hashlib.sha256()
    for file in snapshot_files(folder):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def digest_environment(file: Path) -> str:
    """A hash over the files of a node environment: this file, and the conda file named in it."""
    digest = hashlib.sha256(file.read_bytes())
    digest.update(file.with_name(file.name.replace("environment", "conda")).read_bytes())
    return digest.hexdigest()


def snapshot_files(folder: Path) -> list[Path]:
    """The files for the nodes, by name: every file except caches and hidden files.

    Raises BadInput for a link to a target outside of the folder, which is neither followed nor silently skipped.
    """
    paths = (p for p in folder.rglob("*") if p.is_symlink() or p.is_file())
    kept = [p for p in paths if not any(s.startswith((".", "__pycache__")) for s in p.relative_to(folder).parts)]
    root = folder.resolve()
    if away := [p for p in kept if p.is_symlink() and not (p.is_file() and p.resolve().is_relative_to(root))]:
        names = ", ".join(p.relative_to(folder).as_posix() for p in sorted(away)[:NAMED])
        raise BadInput(
            f"{folder} has links that do not point to a file in it: {names}. Replace the links by the files."
        )
    return sorted(kept)
