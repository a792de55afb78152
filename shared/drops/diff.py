"""Compare two lists of a drop's files, and parse references to lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.storage import Blob
from shared.runs.content import SUCCESS_MARKER

NOW, LATEST = "now", "latest"
_REF = re.compile(r"(?:drops/)?(?P<drop>[^/]+/[^/]+?)(?:@(?P<which>[0-9]{1,8}|now|latest))?/?")


@dataclass(frozen=True)
class DataRef:
    """A generation of a drop (0: the newest), or with `now` the drop's current content."""

    key: DropKey
    number: int = 0
    now: bool = False


@dataclass(frozen=True)
class DataFile:
    """A file of a drop. `content` is the MD5 of the file, or the etag if the storage has no MD5."""

    path: str
    size: int
    content: str


@dataclass(frozen=True)
class DataDiff:
    """The changes from the first list to the second. A changed file has the values of the second list."""

    added: tuple[DataFile, ...]
    changed: tuple[DataFile, ...]
    gone: tuple[DataFile, ...]
    same: int


def read_ref(text: str) -> DataRef:
    """`route/name`, `route/name@3`, `route/name@latest` or `route/name@now`. Raises Impossible for any other text."""
    match = _REF.fullmatch(text)
    if match is None:
        forms = "<route>/<name>, <route>/<name>@<generation>, <route>/<name>@now, or a run"
        raise Impossible(f"{text[:120]!r} does not name data. Use {forms}.", "bad_data")
    which = match["which"] or LATEST
    return DataRef(DropKey.of(match["drop"]), int(which) if which.isdigit() else 0, which == NOW)


def files_of(key: DropKey, blobs: Iterable[Blob]) -> list[DataFile]:
    """The blobs as files of the drop, without the marker, which is not content."""
    files = []
    for blob in blobs:
        path = blob.name.removeprefix(key.prefix()) if blob.name != str(key) else key.name
        if path != SUCCESS_MARKER and blob.metadata.get("hdi_isfolder") != "true":
            files.append(DataFile(path, blob.size, blob.md5 or blob.etag.strip('"')))
    return files


def compare(before: Iterable[DataFile], after: Iterable[DataFile]) -> DataDiff:
    """The difference between the lists, each part in the order of paths."""
    old, new = {file.path: file for file in before}, {file.path: file for file in after}
    both = sorted(old.keys() & new.keys())
    changed = tuple(
        new[path] for path in both if (old[path].size, old[path].content) != (new[path].size, new[path].content)
    )
    return DataDiff(
        tuple(new[path] for path in sorted(new.keys() - old.keys())),
        changed,
        tuple(old[path] for path in sorted(old.keys() - new.keys())),
        len(both) - len(changed),
    )
