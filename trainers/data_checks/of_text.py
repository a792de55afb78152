"""The checks of texts and tables: encodings, empty files, sizes, columns."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from . import archive, listing, table, text
from .data import Data
from .findings import DataError, Severity
from .names import split_of
from .source import CHUNK, PACKED, File
from .text import Decoding

LEAST_PIECES = 2  # one to train on, one held out
SHOWN = 20
READ = 1 << 20  # bytes of a large table
_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


def check_text(data: Data) -> None:
    files = [file for file in data.files if text.is_text(file.path)]
    data.card.unit = "files"
    if not any(file.size for file in files):
        sentence = f"the drop: expected files with text in UTF-8, .gz or not, found none among {len(files):,}"
        data.findings.refuse("no_text", sentence)
        return
    listing.empty_files(data, Severity.WARN, text.is_text)
    read = list(data.chosen([file.path for file in files if file.size]))
    texts = {path: _decoded(data, data.by_path[path]) for path in read}
    for path, each in texts.items():
        if each.problem:
            inside = " (an archive: a trainer unpacks only one that is alone)" if path.lower().endswith(PACKED) else ""
            data.findings.complain("encoding", path, each.problem + inside)
    _strange(data, texts)
    whole = len(read) == sum(bool(file.size) for file in files) and not data.left_out
    pieces = sum(-(-each.characters // text.PIECE) for each in texts.values())
    if whole and not data.partial and pieces < LEAST_PIECES:
        sentence = f"the drop: expected more than {text.PIECE:,} characters, to train and to validate, found"
        count = sum(each.characters for each in texts.values())
        data.findings.refuse("little_text", f"{sentence} {count:,}")
    _describe(data, files)
    part = "" if not data.left_out else f" Of {len(data.left_out):,} of them the beginning, the middle and the end."
    data.card.read = f"{len(read):,} of {len(files):,} files were read.{part}"


def _decoded(data: Data, file: File) -> Decoding:
    """Read a file; of one that is larger than a check reads, the beginning, the middle and the end."""
    decoding = Decoding()
    if file.size > data.settings.document and not data.source.whole and not file.path.lower().endswith(".gz"):
        data.left_out.append(file.path)
        for offset in (0, file.size // 2, file.size - CHUNK):
            if not _feed_part(decoding, data.source.read(file.path, offset, CHUNK), offset):
                break
        return decoding
    try:
        for piece in _pieces(data, file):
            if not decoding.feed(piece):
                return decoding
        decoding.feed(b"", final=True)
    except _GZIP as error:
        decoding.problem = f"expected a gzip file, found {type(error).__name__}: {error}"
    return decoding


def _feed_part(decoding: Decoding, piece: bytes, offset: int) -> bool:
    """Feed a part of a file, without characters that are cut at its borders."""
    begin = next((at for at in range(4) if offset == 0 or at >= len(piece) or piece[at] & 0xC0 != 0x80), 0)
    end = next(
        (len(piece) - at for at in range(4) if piece[len(piece) - at - 1 : len(piece) - at] < b"\x80"), len(piece)
    )
    return decoding.feed(piece[begin:end])


def _pieces(data: Data, file: File) -> Iterator[bytes]:
    stream: Any = archive.stream(data.source, file.path, file.size)
    if file.path.lower().endswith(".gz"):
        stream = gzip.GzipFile(fileobj=stream)
    done = 0
    while piece := stream.read(CHUNK):
        done += len(piece)
        yield piece
        # A gzip file unfolds to at most 1,032 times its size
        if data.late() or done > 64 * max(data.settings.document, file.size):
            data.left_out.append(file.path)
            return


def _strange(data: Data, texts: dict[str, Decoding]) -> None:
    good = {path: each for path, each in texts.items() if not each.problem}
    if marked := [path for path, each in good.items() if each.marked]:
        data.findings.warn("bom", "Files begin with a byte order mark, which the trainer skips:", marked)
    if lost := [f"{path} ({each.replaced:,})" for path, each in good.items() if each.replaced]:
        data.findings.warn("lost", "Characters were lost in an earlier conversion (U+FFFD) in:", lost)


def _describe(data: Data, files: list[File]) -> None:
    splits = {file.path: split_of(file.path) or "all" for file in files}
    for split, count in Counter(splits.values()).items():
        data.card.count(split, {"files": count})
    listing.duplicates(data, splits)


def check_csv(data: Data) -> None:
    """Check the tables of a drop: `columns` names the columns, `delimiter` the delimiter."""
    _tables(data, (".csv", ".tsv"), _csv)


def check_parquet(data: Data) -> None:
    _tables(data, (".parquet", ".pq"), _parquet)


def _tables(data: Data, endings: tuple[str, ...], read: Any) -> None:
    data.card.unit = "rows"
    listing.packed(data)
    files = [file for file in data.files if file.path.lower().endswith(endings)]
    if not files:
        data.findings.refuse(
            "no_table", f"the drop: expected files with names that end in {' or '.join(endings)}, found none"
        )
        return
    if others := [file.path for file in data.files if file not in files and not file.path.lower().endswith(PACKED)]:
        data.findings.note("other", "Files are no tables:", others)
    rows: dict[str, dict[str, int]] = {}
    tables: dict[str, table.Table] = {}
    for file in files:
        if file.path not in (chosen := set(data.chosen([each.path for each in files]))) or not chosen:
            continue
        try:
            tables[file.path] = found = read(data, file)
        except DataError as error:
            data.findings.refuse("table", str(error))
            continue
        if found.rows is not None:
            rows.setdefault(split_of(file.path) or "all", {})[file.path] = found.rows
    for split, counts in rows.items():
        data.card.count(split, {"rows": sum(counts.values())})
    data.card.read = f"{len(tables):,} of {len(files):,} tables were read."
    _columns(data, tables)
    listing.duplicates(data, {file.path: split_of(file.path) or "all" for file in files})


def _columns(data: Data, tables: dict[str, table.Table]) -> None:
    """Find tables without the declared columns, with other columns than most, or without rows."""
    wanted = [str(name) for name in data.options.get("columns") or ()]
    least = int(data.options.get("rows", 1))
    usual = Counter(each.columns for each in tables.values()).most_common(1)
    for path, each in tables.items():
        if lacking := [name for name in wanted if name not in each.columns]:
            shown = ", ".join(each.columns[:SHOWN])
            data.findings.complain("column", path, f"expected the columns {', '.join(lacking)}, found {shown}")
        elif not wanted and each.columns != usual[0][0]:
            data.findings.doubt("column", path, "its columns are not those of most tables")
        if again := sorted(name for name, count in Counter(each.columns).items() if count > 1):
            data.findings.doubt("same_column", path, f"columns are there twice: {', '.join(again[:SHOWN])}")
        if each.rows is not None and each.rows < least:
            data.findings.complain("rows", path, f"expected at least {least:,} rows, found {each.rows:,}")


def _csv(data: Data, file: File) -> table.Table:
    """Read a table, or its first READ bytes. Raises DataError for an empty one and for another encoding."""
    if not file.size:
        raise DataError(f"{file.path}: expected a table, found an empty file")
    whole = file.size <= data.settings.document or data.source.whole
    content = data.source.read(file.path, 0, file.size if whole else READ)
    decoding = Decoding()
    if not decoding.feed(content if whole else content[: content.rfind(b"\n") + 1], final=whole):
        raise DataError(f"{file.path}: {decoding.problem}")
    if decoding.marked:
        data.findings.warn(
            "bom", "The table begins with a byte order mark, which may become a part of the first column:", [file.path]
        )
    decoded = content.decode("utf-8-sig", "ignore")
    delimiter = str(data.options.get("delimiter") or table.delimiter_of(decoded))
    rows = table.rows_of(decoded, delimiter, whole)
    _, header = next(rows, (0, []))
    count = 0
    for line, row in rows:
        count += 1
        if len(row) != len(header):
            place, message = f"{file.path}: line {line}", f"expected {len(header)} values, as in the first line"
            data.findings.complain("values", place, f"{message}, found {len(row)}")
        elif "\0" in "".join(row):
            data.findings.complain("zero", f"{file.path}: line {line}", "found a zero byte")
    return table.Table(tuple(name.strip() for name in header), count if whole else None)


def _parquet(data: Data, file: File) -> table.Table:
    tail = data.source.read(file.path, max(0, file.size - 8), 8)
    size = table.footer_size(file.path, data.source.read(file.path, 0, 4), tail)
    if size > file.size - 12:
        raise DataError(f"{file.path}: expected a footer within {file.size:,} bytes, found one of {size:,}")
    if size > table.FOOTER:
        data.left_out.append(file.path)
        return table.Table(())
    return table.read_footer(file.path, data.source.read(file.path, file.size - 8 - size, size))
