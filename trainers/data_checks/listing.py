"""Checks of a data set's file list, for any kind of data: names, sizes and MD5 sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, islice

from .data import Data
from .files import Label, Same
from .findings import NAMED, Severity
from .source import PACKED

LONGEST = 255  # bytes of the name of a file or folder, on every common file system
MOST = 1_000_000  # files; an archive with more is not unpacked, and a mounted folder takes hours to read


def check(data: Data) -> None:
    """Report names that differ only in case, and too many files; describe the sizes."""
    data.card.files, data.card.bytes, data.card.sizes = data.files.count, data.files.bytes, data.files.sizes()
    if twins := [" and ".join(same[:NAMED]) for same in data.files.twins()]:
        data.findings.warn("case", "Names differ only in upper and lower case, and are one file on some disks:", twins)
    long = (path for path in data.files.paths() if len(path) * 4 > LONGEST and _is_long(path))
    if first := next(long, ""):
        message = f"No node can store a name of more than {LONGEST} bytes:"
        data.findings.refuse("long_name", message, chain([first], long))
    if data.files.count > MOST:
        data.findings.warn(
            "many_files", f"{data.files.count:,} files are more than a trainer reads well: pack them into archives."
        )


def _is_long(path: str) -> bool:
    return any(len(part.encode()) > LONGEST for part in path.split("/"))


def empty_files(data: Data, severity: Severity, matters: Callable[[str], bool] = lambda _: True) -> None:
    """Report files without content."""
    if names := [file.path for file in data.files if not file.size and matters(file.path)]:
        data.findings.add(severity, "empty_file", "Files are empty:", data.files.every(names))


def packed(data: Data, unread: Callable[[str], bool] = lambda _: True) -> None:
    """Report archives among the files, because a trainer unpacks an archive only if it is the drop's only file."""
    if names := [file.path for file in data.files if file.path.lower().endswith(PACKED) and unread(file.path)]:
        sentence = "Archives are not unpacked, because a trainer unpacks only an archive that is alone in its drop:"
        data.findings.warn("archive_inside", sentence, data.files.every(names))


@dataclass
class Equals:
    """Groups of equal files: the number of groups, the number of files beyond the first of each group, and the
    first groups by name."""

    groups: int = 0
    more: int = 0
    first: list[list[str]] = field(default_factory=list)

    def add(self, same: Same) -> None:
        self.groups += 1
        self.more += same.files - 1
        self.first = list(islice(merge(self.first, [same.paths]), NAMED))

    def warn(self, data: Data, code: str, sentence: str) -> None:
        if self.groups:
            names = (" = ".join(paths) for paths in self.first)
            data.findings.warn(code, sentence, names, self.groups)


def duplicates(
    data: Data, split_of: Mapping[str, str], class_of: Mapping[str, str] | None = None, alone: bool = False
) -> None:
    """Report files with the same content: across splits, with different classes, and within a split.

    The maps give the split and the class of the files that count, by their stand-in, or with `alone` by their own
    paths. Files without an MD5 are not compared.
    """
    across, mixed, within = Equals(), Equals(), Equals()
    classes = class_of or {}

    def label(path: str, stand_in: str) -> Label | None:
        known = path if alone else stand_in
        return (split_of[known], classes.get(known, "")) if known in split_of else None

    for same in data.files.same(label):
        is_across, is_mixed = (len({each[at] for each in same.labels}) > 1 for at in (0, 1))
        for kind, counts in ((across, is_across), (mixed, is_mixed), (within, not (is_across or is_mixed))):
            if counts:
                kind.add(same)
    data.card.duplicates = {"within": within.more, "across": across.groups}
    across.warn(data, "leakage", "The same file is in several splits, so what is tested was also trained on:")
    mixed.warn(data, "two_classes", "The same file is in several classes:")
    within.warn(data, "duplicates", "Files have the same content:")


def balance(data: Data, split: str, counts: Mapping[str, int]) -> None:
    """Report classes with few files, and classes with many times fewer files than another."""
    if not counts:
        return
    largest = max(counts, key=lambda name: counts[name])
    settings = data.settings
    small = [f"{name} ({n:,})" for name, n in sorted(counts.items()) if 0 < n * settings.balance <= counts[largest]]
    if small:
        data.findings.warn(
            "balance",
            f"In {split}, {largest} has {counts[largest]:,}, over {settings.balance:g} times as many as:",
            small,
        )
    few = [f"{name} ({n:,})" for name, n in sorted(counts.items()) if 0 < n < settings.few]
    if few:
        data.findings.warn("few", f"In {split}, classes have fewer than {settings.few} files:", few)
