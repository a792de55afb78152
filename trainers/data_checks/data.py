"""The data set that a check looks at, with its bounds, and what the check has found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import pictures, sample
from .card import Card, modes_of, three
from .findings import Findings
from .pictures import Picture
from .source import File, Source

AT_ONCE = 64  # pictures between two looks at the clock
WHOLE_PICTURE = 4 * pictures.EDGE  # bytes; a smaller picture is read whole, which is one request instead of two


@dataclass(frozen=True)
class Settings:
    """The bounds of a check. A route's `check` sets those in ROUTE_KEYS."""

    sample: int = 1000  # pictures and small annotations that are read; all of a folder that is read whole
    broken: float = 0.05  # the share of broken images that the trainer may leave out
    balance: float = 10.0  # warn if the largest class has so many times the files of the smallest
    few: int = 10  # warn about fewer training files of a class
    document: int = 16 << 20  # bytes of one file of annotations, text or a table that is read
    threads: int = 16


ROUTE_KEYS = ("sample", "broken", "balance", "few")


class Unfinished(Exception):
    """The time is over. `read` are the pictures that were read, with which another check continues."""

    def __init__(self, read: Mapping[str, Picture]) -> None:
        super().__init__("The check needs more time.")
        self.read = read


class TooSlow(Exception):
    """The time is over in a file that has to be read from its beginning."""


@dataclass
class Data:
    """A data set under a check.

    `options` is the declaration of the data. `partial`: the files are only the first of a longer list, so nothing can
    be said about what is missing. `only_list`: no file can be read. `late` tells that the time is over; `known` are
    pictures that an earlier part of the check read. `seed` chooses the sample.
    """

    source: Source
    files: Sequence[File]
    settings: Settings = field(default_factory=Settings)
    options: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False
    only_list: bool = False
    late: Callable[[], bool] = lambda: False
    known: Mapping[str, Picture] = field(default_factory=dict)
    seed: str = ""
    findings: Findings = field(default_factory=Findings)
    card: Card = field(default_factory=Card)
    left_out: list[str] = field(default_factory=list)  # files too large to be read
    close: Callable[[], object] = lambda: None

    @cached_property
    def by_path(self) -> dict[str, File]:
        return {file.path: file for file in self.files}

    def content(self, path: str) -> bytes | None:
        """Return a file's content; None if it is larger than a check reads."""
        size = self.by_path[path].size
        if self.only_list or size > self.settings.document:
            self.left_out.append(path)
            return None
        return self.source.read(path, 0, size) if size else b""

    def chosen(self, paths: Sequence[str]) -> list[str]:
        """Return the paths to read: all, if reading all takes only seconds, otherwise a sample."""
        if self.only_list:
            return []
        return list(paths) if self.source.whole else sample.choose(paths, self.settings.sample, self.seed)

    def pictures(self, paths: Sequence[str]) -> dict[str, Picture]:
        """Return what is known of a sample of these pictures. Empty ones are known from the list.

        Raises Unfinished when the time is over, but not before it read AT_ONCE more.
        """
        read = {path: Picture(broken="it is empty") for path in paths if not self.by_path[path].size}
        wanted = list(self.chosen([path for path in paths if path not in read]))
        read |= {path: self.known[path] for path in wanted if path in self.known}
        left = [path for path in wanted if path not in read]
        with ThreadPoolExecutor(self.settings.threads, "pictures") as pool:
            for start in range(0, len(left), AT_ONCE):
                some = left[start : start + AT_ONCE]
                read |= zip(some, pool.map(self._picture, some), strict=True)
                if start + AT_ONCE < len(left) and self.late():
                    raise Unfinished(read)
        self.card.read = sample.sentence(sum(bool(each.broken) for each in read.values()), len(read), len(paths))
        return read

    def _picture(self, path: str) -> Picture:
        size = self.by_path[path].size
        if size <= WHOLE_PICTURE or self.source.whole:
            return pictures.inspect(self.source.read(path, 0, size), b"", size)
        head = self.source.read(path, 0, pictures.EDGE)
        return pictures.inspect(head, self.source.read(path, size - pictures.EDGE, pictures.EDGE), size)

    def describe(self, read: Mapping[str, Picture]) -> None:
        """Put what is known of the pictures into the card, and find what is strange about those that can be decoded."""
        good = {path: each for path, each in read.items() if not each.broken}
        self.card.widths = three(each.width for each in good.values() if each.width)
        self.card.heights = three(each.height for each in good.values() if each.height)
        self.card.modes = modes_of((each.format, each.mode) for each in good.values())
        for code, strange, sentence in (
            (
                "extension",
                lambda path, each: not pictures.fits(path, each),
                "The extension does not fit the content of",
            ),
            ("cmyk", lambda _, each: each.mode == "CMYK", "CMYK, whose colours change when converted to RGB, are"),
            ("depth", lambda _, each: each.mode.endswith(";16"), "16 bits per colour, of which 8 are used, have"),
            ("animated", lambda _, each: each.mode.endswith(pictures.ANIMATED), "Only the first picture is used of"),
            ("tiny", lambda _, each: 0 < min(each.width, each.height) < 8, "Fewer than 8 pixels wide or high are"),
        ):
            if names := [path for path, each in good.items() if strange(path, each)]:
                self.findings.warn(code, f"{sentence}:", [f"{name} ({_words(good[name])})" for name in sorted(names)])


def _words(picture: Picture) -> str:
    return f"{picture.format} {picture.mode}, {picture.width} x {picture.height}"


def broken_of(read: Mapping[str, Picture]) -> list[str]:
    """Return the broken pictures with their reasons."""
    return [f"{path}: {each.broken}" for path, each in sorted(read.items()) if each.broken]


def rank(files: Iterable[File]) -> list[int]:
    """Return the sizes of the smallest, the median and the largest file."""
    return three(file.size for file in files)
