"""The check of a whole data set, from its files to a verdict and a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import archive, kinds, listing
from .archive import Overfull
from .card import Card
from .data import Data, Settings, TooSlow
from .files import files_of
from .findings import DataError, Finding, Severity
from .source import PACKED, Source, is_data


@dataclass(frozen=True)
class Result:
    """The verdict of a check: the most severe of its findings, or a note; the findings; and the card."""

    verdict: Severity
    findings: tuple[Finding, ...]
    card: Card

    def of(self, severity: Severity) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is severity]


@dataclass(frozen=True)
class Task:
    """What to check: the declaration of the data, the limits, and the results of an earlier part of the check.

    `declared` has the kind and its options: `{"kind": "image_folder"}`. Without a kind, only the file list is checked.
    """

    declared: Mapping[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    partial: bool = False
    only_list: bool = False
    late: Callable[[], bool] = lambda: False
    over: Callable[[], bool] = lambda: False
    known: Mapping[str, Any] = field(default_factory=dict)
    seed: str = ""


def check(source: Source, task: Task) -> Result:
    """Check the data set. Raises Unfinished when the time is over before the end."""
    data = _data(source, task)
    data.card.kind = str(task.declared.get("kind", ""))
    if not data.files.count:
        data.findings.refuse("no_files", "the drop: expected data, found no file")
        return result(data)
    alone = _only_archive(data)
    listing.check(data)
    if lost := [name for name in getattr(source, "lost", ()) if is_data(name)]:
        data.findings.refuse("lost_link", "Links lead to nothing:", lost)
    if not alone or task.only_list or data.card.kind in ("", "files"):
        return _of_kind(data, task)
    try:
        inside = _inside(data, alone, task)
    except DataError as error:
        data.findings.refuse("archive", str(error))
        return result(data)
    except (TimeoutError, Overfull):
        data.findings.note("archive", f"{alone} is too large to be looked into before it is trained on.")
        return result(data)
    inside.card.bytes = data.card.bytes
    try:
        return _of_kind(inside, task)
    finally:
        inside.close()


def _of_kind(data: Data, task: Task) -> Result:
    declared = {} if _only_archive(data) and task.only_list else task.declared  # the archive was not opened
    try:
        kinds.checker(declared)(data)
    except DataError as error:  # an unreadable entry of an archive
        data.findings.refuse("unreadable", str(error))
    except TooSlow:
        data.findings.note("time", "The time for a check was over before everything was read.")
    return result(data)


def result(data: Data) -> Result:
    """Return the result of what was found so far."""
    findings = tuple(data.findings.all())
    return Result(findings[0].severity if findings else Severity.NOTE, findings, data.card)


def _data(source: Source, task: Task) -> Data:
    return Data(
        source,
        files_of(file for file in source.files if is_data(file.path)),
        task.settings,
        task.declared,
        **{name: getattr(task, name) for name in ("partial", "only_list", "late", "over", "known", "seed")},
    )


def _only_archive(data: Data) -> str:
    """Return the archive that is the only file of the top folder, which trainers unpack; otherwise ''."""
    path = next(data.files.paths())
    return path if data.files.count == 1 and archive.is_archive(path) and "/" not in path else ""


def _inside(data: Data, path: str, task: Task) -> Data:
    """Return the data set in an archive, with the problems of the archive's entries."""
    entries = archive.opened(data.source, path, data.file(path).size, task.over)
    inside = _data(entries, task)
    inside.settings = replace(task.settings, threads=1)
    inside.close = entries.close
    inside.card.kind = data.card.kind
    if entries.problems:
        inside.findings.refuse("entries", f"{path}: a trainer unpacks plain files only, and not:", entries.problems)
    if entries.twice:
        inside.findings.warn(
            "same_entry", f"{path}: of entries with the same name, the last one counts:", entries.twice
        )
    if not inside.files.count:
        inside.findings.refuse("no_files", f"{path}: expected files, found none")
    if nested := [file.path for file in inside.files if file.path.lower().endswith(PACKED)]:
        every = inside.files.every(nested)
        inside.findings.warn("archive_inside", f"{path} holds archives, which are not unpacked:", every)
    listing.check(inside)
    return inside
