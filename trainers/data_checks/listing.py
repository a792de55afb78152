"""What the list of a data set's files says, whatever their kind: names, sizes and MD5 sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from .data import Data
from .findings import Severity
from .source import PACKED, File

LONGEST = 255  # bytes of the name of a file or folder, on every common file system
MOST = 1_000_000  # files; an archive with more is not unpacked, and a mounted folder takes hours to read


def check(data: Data) -> None:
    """Find names that differ only in case, and too many files; describe the sizes."""
    data.card.files, data.card.bytes = len(data.files), sum(file.size for file in data.files)
    data.card.sizes = [file.size for file in _three(data.files)]
    spellings: dict[str, list[str]] = defaultdict(list)
    for file in data.files:
        spellings[file.path.lower()].append(file.path)
    if twins := [" and ".join(same) for same in spellings.values() if len(same) > 1]:
        data.findings.warn("case", "Names differ only in upper and lower case, and are one file on some disks:", twins)
    if long := [file.path for file in data.files if any(len(part.encode()) > LONGEST for part in file.path.split("/"))]:
        data.findings.refuse("long_name", f"No node can store a name of more than {LONGEST} bytes:", long)
    if len(data.files) > MOST:
        data.findings.warn(
            "many_files", f"{len(data.files):,} files are more than a trainer reads well: pack them into archives."
        )


def _three(files: object) -> list[File]:
    every = sorted(files, key=lambda file: file.size)  # type: ignore[call-overload]
    return [every[0], every[len(every) // 2], every[-1]] if every else []


def empty_files(data: Data, severity: Severity, matters: Callable[[str], bool] = lambda _: True) -> None:
    """Find files without content."""
    if names := [file.path for file in data.files if not file.size and matters(file.path)]:
        data.findings.add(severity, "empty_file", "Files are empty:", names)


def packed(data: Data, unread: Callable[[str], bool] = lambda _: True) -> None:
    """Find archives among the files: a trainer unpacks only an archive that is alone in its drop."""
    if names := [file.path for file in data.files if file.path.lower().endswith(PACKED) and unread(file.path)]:
        sentence = "Archives are not unpacked, because a trainer unpacks only an archive that is alone in its drop:"
        data.findings.warn("archive_inside", sentence, names)


def duplicates(data: Data, split_of: Mapping[str, str], class_of: Mapping[str, str] | None = None) -> None:
    """Find files with the same content: across splits, with different classes, and within a split.

    The maps give the split and the class of the files that count. Files without an MD5 are not compared.
    """
    groups: dict[tuple[str, int], list[str]] = defaultdict(list)
    for file in data.files:
        if file.md5 and file.size and file.path in split_of:
            groups[file.md5, file.size].append(file.path)
    same = [sorted(paths) for paths in groups.values() if len(paths) > 1]
    across = [paths for paths in same if len({split_of[path] for path in paths}) > 1]
    labels = class_of or {}
    mixed = [paths for paths in same if len({labels[path] for path in paths if path in labels}) > 1]
    within = [paths for paths in same if paths not in across and paths not in mixed]
    data.card.duplicates = {"within": sum(len(paths) - 1 for paths in within), "across": len(across)}
    findings = data.findings
    if across:
        sentence = "The same file is in several splits, so what is tested was also trained on:"
        findings.warn("leakage", sentence, [" = ".join(paths) for paths in across])
    if mixed:
        findings.warn("two_classes", "The same file is in several classes:", [" = ".join(paths) for paths in mixed])
    if within:
        findings.warn("duplicates", "Files have the same content:", [" = ".join(paths) for paths in within])


def balance(data: Data, split: str, counts: Mapping[str, int]) -> None:
    """Find classes with few files, and classes with many times fewer files than another."""
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
