"""The folder of checkpoints: names, markers, checksums, and reasons for skipping a checkpoint."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from files import replacing

MARKER = "complete.json"
NEWEST = "newest.json"
UNFINISHED = "so it was never finished"
# The number of the save, the number of steps, and in an elastic run the number of the team. So a checkpoint of a node
# that was stopped, and wakes up after the others continued, is older than their checkpoints.
NAME = re.compile(r"(\d{6})-step-\d+(?:-round-(\d+))?")


class Damaged(Exception):
    """A checkpoint's folder has no marker, or its files don't match the marker. The message is for the log."""


def verified(path: Path) -> dict[str, Any] | None:
    """Return the marker of a checkpoint's folder, or None if a file is missing or has another size. No content is
    read."""
    try:
        marker = read_marker(path)
        check_sizes(path, marker)
    except Damaged:
        return None
    return marker


def read_marker(path: Path) -> dict[str, Any]:
    """Return the marker of a checkpoint's folder. Raises Damaged."""
    try:
        text = (path / MARKER).read_text()
    except FileNotFoundError:
        raise Damaged(f"it has no {MARKER}, {UNFINISHED}") from None
    except (OSError, ValueError) as error:
        raise Damaged(f"its {MARKER} cannot be read: {error}") from None
    try:
        marker: dict[str, Any] = json.loads(text)
        if {"files", "facts", "fixed", "world_size"} <= marker.keys():
            return marker
    except (ValueError, AttributeError):
        pass
    raise Damaged(f"its {MARKER} is cut off, or is not one")


def check_sizes(path: Path, marker: Mapping[str, Any]) -> None:
    """Raise Damaged for a missing file or a changed size."""
    for name, size in marker["files"].items():
        try:
            found = (path / name).stat().st_size
        except OSError:
            raise Damaged(f"its file {name} is missing") from None
        if found != size:
            raise Damaged(f"its file {name} has {found:,} bytes, {size:,} were written")


def check_sums(path: Path, marker: Mapping[str, Any], rank: int = 0, world_size: int = 1) -> None:
    """Raise Damaged if the content of a file has changed. Each rank reads its share of the files."""
    for name, expected in sorted(marker.get("sha256", {}).items())[rank::world_size]:
        try:
            found = sum_of(path / name)
        except OSError as error:
            raise Damaged(f"its file {name} cannot be read: {error}") from None
        if found != expected:
            raise Damaged(f"its file {name} was changed after it was written (its checksum differs)")


def sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def newest_of(folder: Path) -> str:
    """Return the name of the newest checkpoint that was ever complete, or ''."""
    try:
        return str(json.loads((folder / NEWEST).read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def reason_of(error: BaseException) -> str:
    """Return one line with the cause. DCP wraps the errors of all processes, with their tracebacks, into one error."""
    failures = getattr(error, "failures", None) or {}
    for failure in failures.values():
        inner = failure[0] if isinstance(failure, tuple) else failure
        if isinstance(inner, BaseException):
            error = inner
            break
    error = next(filter(lambda each: isinstance(each, OSError), _chain(error)), error)
    if isinstance(error, OSError) and error.errno in PLAIN:
        return f"{PLAIN[error.errno]} ({error})"
    return f"{type(error).__name__}: {' '.join((str(error).strip().splitlines() or [''])[-1].split())}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes. A writer with an unfinishable file raises a second error after a failure."""
    while error:
        yield error
        error = error.__cause__ or error.__context__


PLAIN = {
    errno.ENOSPC: "there is no room left",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "a file may not become that large",
    errno.EROFS: "the folder is mounted read-only",
    errno.EACCES: "this process may not write there",
}


def order_of(name: str) -> tuple[int, int]:
    """Return the sort key of a checkpoint: a later team is newer, then a later save."""
    found = NAME.fullmatch(name)
    assert found
    return int(found[2] or 0), int(found[1])


def names_in(folder: Path) -> list[str]:
    """Return the names of the checkpoints, complete or not."""
    return [path.name for path in folder.iterdir() if NAME.fullmatch(path.name)] if folder.exists() else []


def complete(path: Path, marker: Mapping[str, Any]) -> None:
    """Write a checkpoint's marker, and record the checkpoint as the newest. Every file must exist."""
    (path / MARKER).write_text(json.dumps(marker) + "\n")
    with replacing(path.parent / NEWEST) as newest:
        newest.write_text(json.dumps({"name": path.name}) + "\n")


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest complete checkpoints, and the remains of older crashes."""
    names = sorted(names_in(folder), key=order_of, reverse=True)
    whole = [name for name in names if verified(folder / name)]
    for name in names:
        if whole and order_of(name) < order_of(whole[0]) and name not in whole[:keep]:
            (folder / name / MARKER).unlink(missing_ok=True)  # first, so that a part never looks complete
            shutil.rmtree(folder / name, ignore_errors=True)
