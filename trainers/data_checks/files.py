"""The files of a data set, as a check iterates over them: in memory, or for a long list in a temporary table on disk.

A check judges files by their names, and most names of a long list do not differ in anything that matters to the check.
So the files of a long list form groups with the same folder, ending, split in the name, and emptiness. A check judges
one file of each group, and reads the others only to count or name them. SQLite sorts and groups the columns that must
be compared over all files, in bounded memory.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import groupby, islice
from typing import NamedTuple, Protocol

from .names import split_of
from .pictures import EXTENSIONS
from .source import PACKED, File

IN_MEMORY = 20_000  # files; of a longer list, only groups are in memory
CACHE = 24 << 10  # KiB of memory for the temporary table
ROWS = 10_000  # that are written at once
SMALL = 100  # files of a group that stay apart, unless they are pictures: a list of images lies beside others
MOST_APART = 50_000  # of such files
NAMED = 10  # paths of files with the same content
ENDINGS = frozenset({*EXTENSIONS, *PACKED, ".gz", ".csv", ".tsv", ".parquet", ".pq", ".json", ".xml", ".txt", ".md"})


Label = tuple[str, str]  # the split and the class of a file, '' for none


class Same(NamedTuple):
    """Files with the same content: the first NAMED paths, how many files there are, and their labels."""

    paths: list[str]
    files: int
    labels: set[Label]


class Files(Protocol):
    """The files of a data set. Iterating yields one file of each group, which represents the others."""

    count: int
    bytes: int

    def __iter__(self) -> Iterator[File]: ...

    def every(self, stand_ins: Iterable[str]) -> Iterator[str]:
        """Yield the paths of all files that these stand-ins represent."""

    def number(self, stand_in: str) -> int:
        """Return the number of files that this stand-in represents."""

    def find(self, path: str) -> File | None: ...

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files."""

    def sizes(self) -> list[int]:
        """Return the smallest, the median and the largest file size in bytes, or [] without files."""

    def twins(self) -> Iterator[list[str]]:
        """Yield groups of paths that differ only in upper and lower case."""

    def same(self, label: Callable[[str, str], Label | None]) -> Iterator[Same]:
        """Yield groups of non-empty files with a label that have the same MD5 and size.

        `label` takes a path and the path of its stand-in.
        """


class Listed:
    """The files of a short list."""

    def __init__(self, files: Iterable[File]) -> None:
        self._files = {file.path: file for file in files}
        self.count, self.bytes = len(self._files), sum(file.size for file in self._files.values())

    def __iter__(self) -> Iterator[File]:
        return iter(self._files.values())

    def every(self, stand_ins: Iterable[str]) -> Iterator[str]:
        return iter(stand_ins)

    def number(self, _stand_in: str) -> int:
        return 1

    def find(self, path: str) -> File | None:
        return self._files.get(path)

    def paths(self) -> Iterator[str]:
        return iter(self._files)

    def sizes(self) -> list[int]:
        sizes = sorted(file.size for file in self)
        return [sizes[0], sizes[len(sizes) // 2], sizes[-1]] if sizes else []

    def twins(self) -> Iterator[list[str]]:
        spellings: dict[str, list[str]] = defaultdict(list)
        for path in self._files:
            spellings[path.lower()].append(path)
        return (same for same in spellings.values() if len(same) > 1)

    def same(self, label: Callable[[str, str], Label | None]) -> Iterator[Same]:
        groups: dict[tuple[str, int], list[tuple[str, Label]]] = defaultdict(list)
        for file in self:
            if file.md5 and file.size and (given := label(file.path, file.path)):
                groups[file.md5, file.size].append((file.path, given))
        for same in groups.values():
            if len(same) > 1:
                yield Same(sorted(path for path, _ in same)[:NAMED], len(same), {given for _, given in same})


class Tabled:
    """The files of a long list, in a temporary table that SQLite keeps on disk beyond CACHE."""

    def __init__(self, files: Iterable[File]) -> None:
        self._table = sqlite3.connect("", isolation_level=None)  # '' is a private temporary file
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE}", "temp_store=FILE"):
            self._table.execute(f"PRAGMA {pragma}")
        self._table.execute(
            "CREATE TABLE files (path TEXT PRIMARY KEY, size INT, md5 TEXT, folded TEXT, grp INT) WITHOUT ROWID"
        )
        self._numbers: dict[tuple[str, str, str, bool], int] = {}
        self._firsts: list[File] = []  # of each group
        self._counts: list[int] = []
        self.count = self.bytes = 0
        self._fill(iter(files))
        self._apart = self._small_groups()

    def _fill(self, files: Iterator[File]) -> None:
        while some := list(islice(files, ROWS)):
            rows = [self._row(file) for file in some]
            self._table.execute("BEGIN")
            self._table.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", rows)
            self._table.execute("COMMIT")

    def _row(self, file: File) -> tuple[str, int, str | None, str | None, int]:
        key = _group(file)
        number = self._numbers.setdefault(key, len(self._firsts))
        if number == len(self._firsts):
            self._firsts.append(file)
            self._counts.append(0)
        self._counts[number] += 1
        self.count, self.bytes = self.count + 1, self.bytes + file.size
        folded = file.path.lower()
        return file.path, file.size, file.md5 or None, None if folded == file.path else folded, number

    def _small_groups(self) -> frozenset[int]:
        """Return the small groups whose files represent only themselves: annotations and lists, not pictures."""
        small = [
            number
            for (_, ending, _, _), number in self._numbers.items()
            if self._counts[number] <= SMALL and ending not in EXTENSIONS
        ]
        return frozenset(small if sum(self._counts[number] for number in small) <= MOST_APART else ())

    def __iter__(self) -> Iterator[File]:
        for number, first in enumerate(self._firsts):
            if number in self._apart:
                query = "SELECT path, size, coalesce(md5, '') FROM files WHERE path >= ? AND path < ? AND grp = ?"
                yield from (File(*row) for row in self._table.execute(query, (*_range(first), number)).fetchall())
            else:
                yield first

    def every(self, stand_ins: Iterable[str]) -> Iterator[str]:
        for path in stand_ins:
            first = self._first(path)
            if first is None:
                yield path
                continue
            query = "SELECT path FROM files WHERE path >= ? AND path < ? AND grp = ?"
            yield from (row[0] for row in self._table.execute(query, (*_range(first), self._numbers[_group(first)])))

    def number(self, stand_in: str) -> int:
        first = self._first(stand_in)
        return self._counts[self._numbers[_group(first)]] if first else 1

    def _first(self, path: str) -> File | None:
        """Return the file if it represents others."""
        file = self.find(path)
        number = self._numbers[_group(file)] if file else -1
        return file if file and number not in self._apart and self._firsts[number].path == path else None

    def find(self, path: str) -> File | None:
        row = self._table.execute("SELECT path, size, coalesce(md5, '') FROM files WHERE path = ?", (path,)).fetchone()
        return File(*row) if row else None

    def paths(self) -> Iterator[str]:
        return (row[0] for row in self._table.execute("SELECT path FROM files"))

    def sizes(self) -> list[int]:
        query = "SELECT size FROM files ORDER BY size LIMIT 1 OFFSET ?"
        return [self._table.execute(query, (at,)).fetchone()[0] for at in (0, self.count // 2, self.count - 1)]

    def twins(self) -> Iterator[list[str]]:
        query = """SELECT coalesce(folded, path) AS one, path FROM files WHERE one IN (SELECT coalesce(folded, path)
            FROM files GROUP BY 1 HAVING count(*) > 1) ORDER BY one, path"""
        if not self._table.execute("SELECT 1 FROM files WHERE folded IS NOT NULL LIMIT 1").fetchone():
            return
        for _, rows in groupby(self._table.execute(query), key=lambda row: row[0]):
            yield [path for _, path in rows]

    def same(self, label: Callable[[str, str], Label | None]) -> Iterator[Same]:
        query = """SELECT md5, size, path, grp FROM files WHERE size > 0 AND (md5, size) IN (SELECT md5, size FROM files
            WHERE size > 0 AND md5 IS NOT NULL GROUP BY md5, size HAVING count(*) > 1) ORDER BY md5, size, path"""
        for _, rows in groupby(self._table.execute(query), key=lambda row: (row[0], row[1])):
            paths, count, labels = list[str](), 0, set[Label]()
            for _, _, path, number in rows:
                if given := label(path, path if number in self._apart else self._firsts[number].path):
                    count += 1
                    paths += [path] if count <= NAMED else []
                    labels.add(given)
            if count > 1:
                yield Same(paths, count, labels)


def files_of(files: Iterable[File]) -> Files:
    """Return the files in memory, or as a table if there are more than IN_MEMORY."""
    rest = iter(files)
    first = list(islice(rest, IN_MEMORY + 1))
    return Listed(first) if len(first) <= IN_MEMORY else Tabled(_chained(first, rest))


def _chained(first: list[File], rest: Iterator[File]) -> Iterator[File]:
    while first:
        yield from first[:ROWS]
        del first[:ROWS]
    yield from rest


def _group(file: File) -> tuple[str, str, str, bool]:
    """Return the properties that the name rules need: folder, ending, split in the name, and whether the file is
    empty."""
    folder, _, name = file.path.rpartition("/")
    stem, dot, last = name.lower().rpartition(".")
    ending = f".{last}" if f".{last}" in ENDINGS else dot
    if ending == ".gz" and (inner := stem.rpartition(".")[2]) in ("csv", "tsv", "tar"):
        ending = f".{inner}.gz"
    return folder, ending, split_of(name), not file.size


def _range(file: File) -> tuple[str, str]:
    """Return the bounds of the paths in the file's folder: from `folder/` to `folder0`, because 0 follows /."""
    folder, slash, _ = file.path.rpartition("/")
    return (f"{folder}/", f"{folder}0") if slash else ("", "\U0010ffff")


class Paths(Set[str]):
    """The paths of all files, as a set that is not held in memory."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._files.find(path) is not None

    def __iter__(self) -> Iterator[str]:
        return self._files.paths()

    def __len__(self) -> int:
        return self._files.count
