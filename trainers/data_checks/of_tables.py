"""The checks of tables: their columns, rows and values, as far as a declaration restricts them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from . import listing, parquet, sample, table
from .columns import Column, columns_of
from .data import Data, TooSlow
from .findings import NAMED, DataError, Findings
from .hashes import Hashes, Packed, one_in, unpacked
from .names import split_of
from .of_text import opened, unpacking
from .source import PACKED, File
from .text import Decoding
from .whole_parquet import check_values

SHOWN = 20
LEAST_DOUBLED = 10  # rows; fewer may repeat by chance
COMPARED = 16 << 20  # bytes of tables whose rows are all compared; of more, one row in two, three, ...
HEAD, BLOCK = 1 << 14, 1 << 20  # bytes of a table that say how it is written; the first block of a large table
PAGES = 8  # of a Parquet file, whose headers are read
FITS = {"integer": {"integer"}, "number": {"number", "integer"}, "boolean": {"boolean"}}
TEXTS = {"string", "bytes", "date", "time", "date-time", "uuid"}  # types that a declared string may have


class Table(NamedTuple):
    """The names of the columns, and the number of rows (None if unknown)."""

    columns: tuple[str, ...]
    rows: int | None = None
    types: tuple[str, ...] = ()


Read = Callable[[Data, File, Mapping[str, Column], Hashes], Table]


def check_csv(data: Data) -> None:
    """Check the CSV files of a drop, which may be gzip files."""
    _tables(data, (".csv", ".tsv", ".csv.gz", ".tsv.gz"), _csv)


def check_parquet(data: Data) -> None:
    _tables(data, (".parquet", ".pq"), _parquet)


def _tables(data: Data, endings: tuple[str, ...], read: Read) -> None:
    data.card.unit = "rows"
    files = [file for file in data.files if file.path.lower().endswith(endings)]
    listing.packed(data, lambda path: not path.lower().endswith(endings))
    if not files:
        data.findings.refuse(
            "no_table", f"the drop: expected files with names that end in {' or '.join(endings)}, found none"
        )
        return
    kept = {file.path for file in files}
    if others := [file.path for file in data.files if file.path not in kept and not _is_packed(file)]:
        data.findings.note("other", "Files are not tables:", data.files.every(others))
    listing.duplicates(data, {file.path: split_of(file.path) or "all" for file in files})
    every = one_in(files, COMPARED)
    tables, bad, rows = _read(data, [file.path for file in files], read, every)
    counts: dict[str, int] = {}
    for path, each in tables.items():
        split = split_of(path) or "all"
        counts[split] = counts.get(split, 0) + (each.rows or 0)
    for split, count in counts.items():
        if any(each.rows for path, each in tables.items() if (split_of(path) or "all") == split):
            data.card.count(split, {"rows": count})
    if not data.only_list:
        number = data.number(file.path for file in files)
        data.card.read = sample.sentence(bad, len(tables) + bad, number, data.left_out)
    _columns(data, tables)
    _leaks(data, rows, every)


def _leaks(data: Data, rows: Mapping[str, Packed], every: int) -> None:
    """Report rows that occur in several splits."""
    splits: dict[int, str] = {}
    across, named = 0, list[str]()
    for path, packed in rows.items():
        split, own = split_of(path) or "all", list(unpacked(packed))
        half = [number for number, _ in own[: len(own) // 2]]
        if len(half) >= LEAST_DOUBLED and half == [number for number, _ in own[len(own) // 2 :]] and len(set(half)) > 1:
            data.findings.doubt("doubled", path, "its second half repeats the rows of its first half")
        for number, line in own:
            if splits.setdefault(number, split) != split:
                across += 1
                named += [f"{path}: line {line}"] if len(named) < NAMED else []
    if across:
        some = f"Of one row in {every:,}, " if every > 1 else ""
        sentence = f"{some}{across:,} rows are in several splits, so what is tested was also trained on:"
        data.findings.warn("leakage", sentence, named, across)


def _is_packed(file: File) -> bool:
    return file.path.lower().endswith(PACKED)


def _read(data: Data, paths: list[str], read: Read, every: int) -> tuple[dict[str, Table], int, dict[str, Packed]]:
    """Return the readable tables by path, the number of unreadable tables in the sample, and rows to compare."""
    declared = columns_of(data.options.get("columns"))

    def work(file: File) -> dict[str, Any]:
        """Read a table, and collect its findings, which are kept if another message continues."""
        own, seen = replace(data, findings=Findings(), left_out=[]), Hashes(every)
        table = None
        try:
            table = read(own, file, declared, seen)
        except DataError as error:
            own.findings.refuse("table", str(error))
        told = list(table) if table else None
        return {"table": told, "rows": seen.packed(), "found": own.findings.rows(), "left_out": own.left_out}

    chosen = sorted(data.chosen(data.files.every(paths)), key=lambda path: (split_of(path) != "train", path))
    known = data.read(chosen, work, at_once=1)
    for each in known.values():
        data.findings.merge(each["found"])
        data.left_out += each["left_out"]
    tables = {
        path: Table(tuple(each["table"][0]), each["table"][1], tuple(each["table"][2]))
        for path, each in known.items()
        if each["table"]
    }
    return tables, len(known) - len(tables), {path: each["rows"] for path, each in known.items()}


def _columns(data: Data, tables: Mapping[str, Table]) -> None:
    """Report tables without the declared columns, with other columns than most tables, or without rows."""
    declared = columns_of(data.options.get("columns"))
    needed = [str(name) for name in data.options.get("required", declared)]
    closed = data.options.get("additionalProperties") is False
    least = int(data.options.get("rows", 1))
    usual = Counter(each.columns for each in tables.values()).most_common(1)
    usual_types = Counter(each.types for each in tables.values()).most_common(1)
    for path, each in tables.items():
        if lacking := [name for name in needed if name not in each.columns]:
            shown = ", ".join(each.columns[:SHOWN])
            data.findings.complain("column", path, f"expected the columns {', '.join(lacking)}, found {shown}")
        elif closed and (more := [name for name in each.columns if name not in declared]):
            data.findings.complain("column", path, f"expected no other columns, found {', '.join(more[:SHOWN])}")
        elif not declared and each.columns != usual[0][0]:
            data.findings.doubt("column", path, "its columns are not those of most tables")
        elif each.types and each.columns == usual[0][0] and each.types != usual_types[0][0]:
            data.findings.doubt("type", path, "the types of its columns are not those of most tables")
        if "" in each.columns:
            data.findings.doubt("nameless", path, "a column has no name")
        if again := sorted(name for name, count in Counter(each.columns).items() if count > 1):
            data.findings.doubt("same_column", path, f"columns are there twice: {', '.join(again[:SHOWN])}")
        if each.rows is not None and each.rows < least:
            data.findings.complain("rows", path, f"expected at least {least:,} rows, found {each.rows:,}")


def _csv(data: Data, file: File, declared: Mapping[str, Column], seen: Hashes) -> Table:
    """Read a table, or the beginning of a large table. Raises DataError for an empty table and for another
    encoding."""
    begin, whole = _beginning(data, file)
    delimiter = str(data.options.get("delimiter") or table.delimiter_of(begin))
    rows = _rows(data, file, delimiter, whole)
    _, header = next(rows, (0, []))
    names = tuple(name.strip() for name in header)
    checked = [(at, name, declared[name]) for at, name in enumerate(names) if name in declared]
    count = 0
    for count, (line, row) in enumerate(rows, start=1):
        seen.add("\0".join(row).encode("utf-8", "replace"), line)
        if row == header and count > 1:
            data.findings.doubt("header", f"{file.path}: line {line}", "the header is there again, as in joined tables")
        if count % 1000 == 0 and data.over():
            raise TooSlow
        _row(data, f"{file.path}: line {line}", row, len(header), checked)
    return Table(names, count if whole else None)


def _beginning(data: Data, file: File) -> tuple[str, bool]:
    """Return the first bytes of a table as text, and whether this is the whole table."""
    if not file.size:
        raise DataError(f"{file.path}: expected a table, found an empty file")
    with unpacking(file.path):
        head = opened(data, file).read(HEAD)
    decoding = Decoding()
    if not decoding.feed(head):
        raise DataError(f"{file.path}: {decoding.problem}")
    if decoding.marked:
        data.findings.warn(
            "bom", "The table begins with a byte order mark, which may become a part of the first column:", [file.path]
        )
    if whole := data.source.whole or file.size <= data.settings.document:
        return head.decode("utf-8-sig", "ignore"), whole
    data.left_out.append(file.path)
    return head.decode("utf-8-sig", "ignore"), whole


def _rows(data: Data, file: File, delimiter: str, whole: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table with their line numbers. Of a large table, only the rows of the first block except the
    last.

    Raises DataError for another encoding, and for a quotation mark that is never closed.
    """
    stream = opened(data, file) if whole else io.BytesIO(opened(data, file).read(BLOCK))
    lines = table.Lines(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
    rows = table.rows_of(lines, delimiter)
    before = None
    try:
        with unpacking(file.path):
            for each in rows:
                if before:
                    yield before
                before = each
    except UnicodeDecodeError as error:
        if whole or error.end < len(error.object):
            byte = error.object[error.start]
            raise DataError(
                f"{file.path}: expected text in UTF-8, found the byte 0x{byte:02x}: {error.reason}"
            ) from error
    except csv.Error as error:
        raise DataError(f"{file.path}: expected CSV, found {error}") from error
    if before and whole:
        yield before
    if whole and lines.quotes % 2:
        data.findings.complain("quote", file.path, "expected an end of each quoted cell, found an odd number of quotes")
    if len(lines.ends) > 1:
        data.findings.note(
            "line_ends", "Lines end in several ways:", [f"{file.path} ({', '.join(sorted(lines.ends))})"]
        )


def _row(data: Data, place: str, row: list[str], width: int, checked: list[tuple[int, str, Column]]) -> None:
    if len(row) != width:
        data.findings.complain("values", place, f"expected {width} values, as in the first line, found {len(row)}")
        return
    if "\0" in "".join(row):
        data.findings.complain("zero", place, "found a zero byte")
    for at, name, column in checked:
        if said := column.cell(row[at]):
            data.findings.complain("value", f"{place}: {name}", said)


def _parquet(data: Data, file: File, declared: Mapping[str, Column], _: Hashes) -> Table:
    """Read a footer; compare types and statistics with the declared columns; check pages, and perhaps all values."""
    read, end = data.source.read, file.size - 8
    size = parquet.footer_size(file.path, read(file.path, 0, 4), read(file.path, max(0, end), 8))
    if size > end - len(parquet.MAGIC):
        raise DataError(f"{file.path}: expected a footer within {file.size:,} bytes, found one of {size:,}")
    if size > parquet.FOOTER:
        data.left_out.append(file.path)
        return Table(())
    footer = parquet.read_footer(file.path, read(file.path, end - size, size))
    wrong = list(parquet.bad_chunks(footer, end - size))
    if not wrong:
        some = [*footer.chunks[: PAGES // 2], *footer.chunks[PAGES // 2 :][-PAGES // 2 :]]
        said = (parquet.bad_page(chunk, lambda at, length: read(file.path, at, length)) for chunk in some)
        wrong = [each for each in said if each]
    for each in wrong:
        data.findings.complain("page", file.path, each)
    typed = {name: column for name, column in declared.items() if name in footer.columns}
    for name, column in typed.items():
        for unfit in _unfit(column, footer.columns[name]):
            data.findings.complain("value", f"{file.path}: {name}", unfit)
    if data.source.whole and not wrong:
        check_values(data, file, typed)
    return Table(tuple(footer.columns), footer.rows, tuple(each.type for each in footer.columns.values()))


def _unfit(column: Column, found: parquet.Footed) -> list[str]:
    """Return how a column of a footer contradicts its declaration: by its type, its bounds, or its missing values."""
    kinds = [kind for kind in column.kinds if kind != "null"]
    if kinds and not any(found.type in FITS.get(kind, TEXTS) for kind in kinds):
        return [f"expected {column.words()}, found the type {found.type}"]
    said = [
        column.value(bound) for bound in (found.least, found.most) if bound is not None and "enum" not in column.schema
    ]
    if found.nulls and column.kinds and "null" not in column.kinds:
        said.append(f"expected {column.words()}, found {found.nulls:,} rows without a value")
    return list(dict.fromkeys(each for each in said if each))
