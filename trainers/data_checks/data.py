"""The data set under a check, with the check's limits, and the findings so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from . import pictures, sample
from .card import Card, modes_of, three
from .files import Files
from .findings import Findings
from .pictures import Picture
from .source import File, Source
from .whole_picture import decoding_problem

AT_ONCE = 64  # files that are read between two checks of the time
MOST_EMPTY = 10_000  # with more empty pictures, only those in the sample count
EMPTY = Picture(broken="it is empty")
WHOLE_PICTURE = 4 * pictures.EDGE  # bytes; a smaller picture is read whole, which is one request instead of two


@dataclass(frozen=True)
class Settings:
    """The limits of a check. A route's `check` sets the limits in ROUTE_KEYS."""

    sample: int = 1000  # pictures and small annotations that are read, unless the folder is read whole
    broken: float = 0.05  # the share of broken images that the trainer may leave out
    balance: float = 10.0  # warn if the largest class has this many times the files of the smallest
    few: int = 10  # warn about fewer training files of a class
    document: int = 16 << 20  # bytes of one file of annotations, text or a table that is read
    threads: int = 16
    decode: bool = False  # pictures, where Pillow is installed


ROUTE_KEYS = ("sample", "broken", "balance", "few")


class Unfinished(Exception):
    """The time is over. `known` holds the results for `done` of `wanted` files; another check continues from there."""

    def __init__(self, known: Mapping[str, Any], done: int, wanted: int) -> None:
        super().__init__(f"The check needs more time: {done:,} of {wanted:,} files were read.")
        self.known, self.done, self.wanted = known, done, wanted


class TooSlow(Exception):
    """The time ran out within one file, which has to be read from its beginning."""


@dataclass
class Data:
    """A data set under a check.

    `options` is the declaration of the data. `partial`: the files are only the first of a longer list, so missing files
    can't be reported. `only_list`: no file can be read. `late` returns whether another message should continue, and
    `over` whether this message must end now. `known` holds what an earlier part of the check read from files. `seed`
    chooses the sample.
    """

    source: Source
    files: Files
    settings: Settings = field(default_factory=Settings)
    options: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False
    only_list: bool = False
    late: Callable[[], bool] = lambda: False
    over: Callable[[], bool] = lambda: False
    known: Mapping[str, Any] = field(default_factory=dict)
    seed: str = ""
    findings: Findings = field(default_factory=Findings)
    card: Card = field(default_factory=Card)
    left_out: list[str] = field(default_factory=list)  # files too large to be read
    close: Callable[[], object] = lambda: None

    def file(self, path: str) -> File:
        """Return the file with this path. Raises KeyError for an unknown path."""
        if (found := self.files.find(path)) is None:
            raise KeyError(path)
        return found

    def number(self, stand_ins: Iterable[str]) -> int:
        """Return the number of files that these stand-ins represent."""
        return sum(map(self.files.number, stand_ins))

    def content(self, path: str) -> bytes | None:
        """Return a file's content, or None if the file is larger than a check reads."""
        size = self.file(path).size
        if self.only_list or size > self.settings.document:
            self.left_out.append(path)
            return None
        return self.source.read(path, 0, size) if size else b""

    def chosen(self, paths: Iterable[str]) -> list[str]:
        """Return the paths to read: all paths if reading takes only seconds, otherwise a sample."""
        if self.only_list:
            return []
        return list(paths) if self.source.whole else sample.choose(paths, self.settings.sample, self.seed)

    def read(self, paths: Sequence[str], work: Callable[[File], Any], at_once: int, threads: int = 1) -> dict[str, Any]:
        """Return the result of `work` for each file, which must be JSON-serializable. Known results are not computed
        again.

        Raises Unfinished when the time is over, but not before `at_once` more files were read.
        """
        read = {path: self.known[path] for path in paths if path in self.known}
        left = [path for path in paths if path not in read]
        with ThreadPoolExecutor(min(threads, self.settings.threads), "files") as pool:
            for start in range(0, len(left), at_once):
                some = left[start : start + at_once]
                read |= zip(some, pool.map(work, map(self.file, some)), strict=True)
                if start + at_once < len(left) and self.late():
                    raise Unfinished(read, len(read), len(paths))
        return {path: read[path] for path in paths}

    def pictures(self, stand_ins: Sequence[str], alone: bool = False) -> dict[str, Picture]:
        """Return the facts about a sample of the pictures that these stand-ins represent, or of exactly these with
        `alone`.

        Empty pictures are known from the list. Raises Unfinished when the time is over, but not before AT_ONCE more
        pictures were read.
        """
        every, number = (iter, len) if alone else (self.files.every, self.number)
        empty = [path for path in stand_ins if not self.file(path).size]
        if number(empty) > MOST_EMPTY:
            empty = []
        read = dict.fromkeys(every(empty), EMPTY)
        wanted = self.chosen(every([path for path in stand_ins if path not in read]))
        rows = self.read(wanted, self._picture, AT_ONCE, self.settings.threads)
        read |= {path: Picture(*row) for path, row in rows.items()}
        broken = sum(bool(each.broken) for each in read.values())
        blind = sum(not each.broken and not each.pixels for each in read.values())
        pixels = f" The pixels of {blind:,} of them were not decoded." if blind else ""
        self.card.read = sample.sentence(broken, len(read), number(stand_ins)) + pixels
        return read

    def _picture(self, file: File) -> list[Any]:
        path, size = file.path, file.size
        if size <= WHOLE_PICTURE or self.source.whole:
            content = self.source.read(path, 0, size)
            return list(astuple(self._decoded(pictures.inspect(content, b"", size), content)))
        head = self.source.read(path, 0, pictures.EDGE)
        tail = self.source.read(path, size - pictures.EDGE, pictures.EDGE)
        return list(astuple(pictures.inspect(head, tail, size)))

    def _decoded(self, picture: Picture, content: bytes) -> Picture:
        """Return the picture after an attempt to decode it, if the settings ask for decoding and no problem is
        known yet."""
        said = decoding_problem(content) if self.settings.decode and not picture.broken else None
        return picture if said is None else replace(picture, broken=said, pixels=not said)

    def describe(self, read: Mapping[str, Picture]) -> None:
        """Put the facts about the pictures into the card, and report unusual decodable pictures."""
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
