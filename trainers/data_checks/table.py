"""Tables in text: the delimiter and the rows of a CSV file. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

DELIMITERS = ",;\t|"
LONGEST_CELL = 1 << 20  # characters; a quotation mark that is never closed makes one cell of the rest of the file


def delimiter_of(text: str) -> str:
    """Return the most frequent delimiter of the first line, or a comma if the line has none."""
    first = text.split("\n", 1)[0]
    return max(DELIMITERS, key=lambda each: (first.count(each), each == ","))


class Lines:
    """The lines of a text, as csv.reader reads them. `ends` holds the line endings, and `quotes` the number of
    quotation marks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.quotes, self.ends = stream, 0, set[str]()

    def __iter__(self) -> Iterator[str]:
        while line := self._stream.readline(LONGEST_CELL + 1):
            self.quotes += line.count('"')
            self.ends.add("CRLF" if line.endswith("\r\n") else "CR" if line.endswith("\r") else "LF")
            yield line


def rows_of(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not blank. Raises csv.Error for a cell that is never
    closed."""
    csv.field_size_limit(max(LONGEST_CELL, csv.field_size_limit()))
    reader = csv.reader(lines, delimiter=delimiter)
    for row in reader:
        if row:
            yield reader.line_num, row
