"""The files of a folder (or one file) sent with a job: every file except matches of .amlignore or .gitignore."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pathspec

from ..errors import CliError, NotFound
from .walk import files_below

IGNORE_FILES = (".amlignore", ".gitignore")  # only the first existing file counts, as in Azure ML
# Never code: files that version control, Python and Azure ML's own tools leave in a folder.
ALWAYS_OUT = (".git/", "__pycache__/", ".venv/", ".ipynb_checkpoints/", ".DS_Store", "azureml-logs/")
MOST_MIB = 5000  # larger folders are not read
MIB = 1 << 20
NAMED = 5


@dataclass(frozen=True)
class Sent:
    """A file of a snapshot: the name relative to the folder, the path on this machine, and the size in bytes."""

    name: str
    path: Path
    size: int

    def md5(self) -> bytes:
        with self.path.open("rb") as content:
            return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).digest()


def snapshot(source: Path) -> list[Sent]:
    """Return the files of a folder sorted by name, or the one file. Raises CliError for no files, or for more than
    MOST_MIB."""
    if source.is_file():
        return [Sent(source.name, source, source.stat().st_size)]
    if not source.is_dir():
        raise NotFound(f"{source} does not exist.")
    files = list(_files(source))
    if not files:
        raise CliError(f"{source} has no files to upload, or its {' or '.join(IGNORE_FILES)} leaves all of them out.")
    if (total := sum(file.size for file in files)) > MOST_MIB * MIB:
        raise CliError(
            f"{source} has {total / MIB:,.0f} MiB; {largest(files)} Leave out what the job does not need, "
            "or upload data as a drop and name it with --data drops/ROUTE/NAME."
        )
    return files


def largest(files: list[Sent]) -> str:
    listed = sorted(files, key=lambda file: -file.size)[:NAMED]
    return "the largest files: " + ", ".join(f"{file.name} ({file.size / MIB:,.1f} MiB)" for file in listed) + "."


def ignored(folder: Path) -> pathspec.GitIgnoreSpec:
    """Return the patterns of files to leave out: the patterns of the folder's ignore file, and patterns of files
    without code.
    """
    file = next((folder / name for name in IGNORE_FILES if (folder / name).is_file()), None)
    lines = file.read_text("utf-8", "replace").splitlines() if file else []
    return pathspec.GitIgnoreSpec.from_lines([*ALWAYS_OUT, *lines])


def _files(folder: Path) -> Iterator[Sent]:
    for name, path in files_below(folder, ignored(folder).match_file):
        yield Sent(name, path, path.stat().st_size)
