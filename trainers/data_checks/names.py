"""Rules for the names of a data set's files: which files belong together, and which split a file belongs to. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from .findings import DataError

SPLITS = {  # names of folders and files that usually mean a split
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val", "eval": "val",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip


def split_of(path: str) -> str:
    """Return the split named in a part of the path, such as val for `val2017/1.jpg`, or ''."""
    for part in path.lower().split("/"):
        for word in re.split(r"[^a-z]+", part):
            if word in SPLITS:
                return SPLITS[word]
    return ""


def locate(paths: Iterable[str], wanted: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the paths of the `wanted` files, all from one folder.

    `wanted` gives each file a name and a regular expression for the whole file name. If several files of one folder
    match, the shortest name counts (`x` before `x.gz`). Other files are ignored. Raises DataError unless exactly one
    folder holds all wanted files. `place` names the data set in the message.
    """
    folders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders[folder].append(name)
    complete: dict[str, dict[str, str]] = {}
    nearest: dict[str, str] = {}
    for folder, names in folders.items():
        hits = {key: [name for name in names if re.fullmatch(expr, name)] for key, expr in wanted.items()}
        found = {key: joined(folder, min(some, key=len)) for key, some in hits.items() if some}
        if len(found) == len(wanted):
            complete[folder] = found
        nearest = max(nearest, found, key=len)
    if len(complete) == 1:
        return next(iter(complete.values()))
    if complete:
        places = ", ".join(sorted(joined(place, folder) for folder in complete))
        raise DataError(f"{place}: expected one data set, found {len(complete)}: {places}")
    missing = ", ".join(key for key in wanted if key not in nearest)
    raise DataError(f"{place}: expected the files {', '.join(wanted)}, found no {missing}")


def joined(folder: str, name: str) -> str:
    """Return the path of a name in a folder; either may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def first_match(paths: Collection[str], patterns: Iterable[str], place: str) -> str:
    """Return the first path that matches a pattern, in the top folder or up to two folders below, or ''.

    In a pattern, `*` stands for any part of a name. Raises DataError if one pattern matches several files.
    """
    for pattern in patterns:
        expression = re.compile("(?:[^/]+/){0,2}" + "[^/]*".join(map(re.escape, pattern.split("*"))))
        found = sorted(path for path in paths if expression.fullmatch(path))
        if len(found) > 1:
            raise DataError(
                f"{place}: expected one {pattern}, found {', '.join(joined(place, each) for each in found)}"
            )
        if found:
            return found[0]
    return ""
