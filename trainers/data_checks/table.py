"""Tables in text: the delimiter and the rows of a CSV file. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

DELIMITERS = ",;\t|"
LONGEST_CELL = 1 << 20  # characters; a quotation mark that is never closed makes one cell of the rest of the file


def delimiter_of(text: str) -> str:
    """Return the delimiter that the first line has most of, a comma if it has none."""
    first = text.split("\n", 1)[0]
    return max(DELIMITERS, key=lambda each: (first.count(each), each == ","))


class Lines:
    """The lines of a text as csv.reader takes them. `ends` and `quotes` tell how the lines end, and how many
    quotation marks there were."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.quotes, self.ends = stream, 0, set[str]()

    def __iter__(self) -> Iterator[str]:
        while line := self._stream.readline(LONGEST_CELL + 1):
            self.quotes += line.count('"')
            self.ends.add("CRLF" if line.endswith("\r\n") else "CR" if line.endswith("\r") else "LF")
            yield line


def rows_of(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not blank. Raises csv.Error for a cell without an end."""
    csv.field_size_limit(max(LONGEST_CELL, csv.field_size_limit()))
    reader = csv.reader(lines, delimiter=delimiter)
    for row in reader:
        if row:
            yield reader.line_num, row
