"""Tables in text: the delimiter and the rows of a CSV file. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

DELIMITERS = ",;\t|"
LONGEST_CELL = 1 << 20  # characters; a quotation mark that is never closed makes one cell of the rest of the file


def delimiter_of(text: str) -> str:
    """Return the delimiter that the first line has most of, a comma if it has none."""
    first = text.split("\n", 1)[0]
    return max(DELIMITERS, key=lambda each: (first.count(each), each == ","))


def rows_of(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not blank. Raises csv.Error for a cell without an end."""
    csv.field_size_limit(max(LONGEST_CELL, csv.field_size_limit()))
    reader = csv.reader(lines, delimiter=delimiter)
    for row in reader:
        if row:
            yield reader.line_num, row
