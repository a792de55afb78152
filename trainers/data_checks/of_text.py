"""The check of texts: encodings, empty files, sizes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from . import archive, listing, sample, text
from .data import Data
from .findings import DataError, Severity
from .names import split_of
from .source import CHUNK, PACKED, File
from .text import Decoding, TextFacts

LEAST_PIECES = 2  # one to train on, one held out
AT_ONCE = 16  # texts between two checks of the time
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


def check_text(data: Data) -> None:
    files = [file for file in data.files if text.is_text(file.path)]
    data.card.unit = "files"
    if not any(file.size for file in files):
        sentence = f"the drop: expected files with text in UTF-8, .gz or not, found none among {len(files):,}"
        data.findings.refuse("no_text", sentence)
        return
    listing.empty_files(data, Severity.WARN, text.is_text)
    filled = [file.path for file in files if file.size]
    read, count = data.chosen(data.files.every(filled)), data.number(filled)
    rows = data.read(read, lambda file: _facts(data, file), AT_ONCE, data.settings.threads)
    texts = {path: TextFacts(*row) for path, row in rows.items()}
    data.left_out += [path for path, each in texts.items() if each.in_part]
    for path, each in texts.items():
        if each.problem:
            inside = " (an archive: a trainer unpacks only one that is alone)" if path.lower().endswith(PACKED) else ""
            data.findings.complain("encoding", path, each.problem + inside)
    _strange(data, texts)
    whole = len(read) == count and not data.left_out
    pieces = sum(-(-each.characters // text.PIECE) for each in texts.values())
    if whole and not data.partial and pieces < LEAST_PIECES:
        sentence = f"the drop: expected more than {text.PIECE:,} characters, to train and to validate, found"
        data.findings.refuse("little_text", f"{sentence} {sum(each.characters for each in texts.values()):,}")
    _describe(data, files)
    bad = sum(bool(each.problem) for each in texts.values())
    if not data.only_list:
        data.card.read = sample.sentence(bad, len(read), count, data.left_out)


def _facts(data: Data, file: File) -> TextFacts:
    """Read a file. Of a file larger than a check reads, read the beginning, the middle and the end."""
    decoding = Decoding()
    if file.size > data.settings.document and not data.source.whole and not file.path.lower().endswith(".gz"):
        for offset in (0, file.size // 2, file.size - CHUNK):
            if not _feed_part(decoding, data.source.read(file.path, offset, CHUNK), offset):
                break
        return decoding.facts(in_part=True)
    try:
        in_part = _feed_all(data, file, decoding)
    except BROKEN_GZIP as error:
        decoding.problem = f"expected a gzip file, found {type(error).__name__}: {error}"
        in_part = False
    return decoding.facts(in_part)


def _feed_part(decoding: Decoding, piece: bytes, offset: int) -> bool:
    """Feed a part of a file, without characters that are cut off at its borders."""
    begin = next((at for at in range(4) if offset == 0 or at >= len(piece) or piece[at] & 0xC0 != 0x80), 0)
    end = next(
        (len(piece) - at for at in range(4) if piece[len(piece) - at - 1 : len(piece) - at] < b"\x80"), len(piece)
    )
    return decoding.feed(piece[begin:end])


def opened(data: Data, file: File) -> IO[bytes]:
    """Return the file's content as a stream, decompressed if the file is a gzip file."""
    stream = archive.stream(data.source, file.path, file.size)
    return gzip.GzipFile(fileobj=stream) if file.path.lower().endswith(".gz") else stream  # type: ignore[return-value]


@contextmanager
def unpacking(path: str) -> Iterator[None]:
    """Raise DataError for a gzip file that can't be read."""
    try:
        yield
    except BROKEN_GZIP as error:
        raise DataError(f"{path}: expected a complete gzip file, found a damaged one: {error}") from error


def _feed_all(data: Data, file: File, decoding: Decoding) -> bool:
    """Feed a whole file, up to its first problem. Return whether the file took too long and was read only in part."""
    stream, done = opened(data, file), 0
    while piece := stream.read(CHUNK):
        done += len(piece)
        if not decoding.feed(piece):
            return False
        # A gzip file expands to at most 1,032 times its size
        if data.over() or done > 64 * max(data.settings.document, file.size):
            return True
    decoding.feed(b"", final=True)
    return False


def _strange(data: Data, texts: dict[str, TextFacts]) -> None:
    good = {path: each for path, each in texts.items() if not each.problem}
    if marked := [path for path, each in good.items() if each.marked]:
        data.findings.warn("bom", "Files begin with a byte order mark, which the trainer skips:", marked)
    for code, sentence, counts in (
        (
            "lost",
            "Characters were lost in an earlier conversion (U+FFFD) in:",
            [each.replaced for each in good.values()],
        ),
        (
            "twice",
            "Text looks as if UTF-8 was read as Latin-1 and written again, in:",
            [e.twice for e in good.values()],
        ),
        (
            "mark_inside",
            "Byte order marks are in the middle, as of joined files, in:",
            [e.marks for e in good.values()],
        ),
        ("controls", "Characters that control a terminal are in:", [each.controls for each in good.values()]),
    ):
        if names := [f"{path} ({count:,})" for path, count in zip(good, counts, strict=True) if count]:
            data.findings.warn(code, sentence, names)
    instead = [f"{path} ({each.instead})" for path, each in good.items() if each.instead]
    if 0 < len(instead) <= len(good) / 2 or any(each.instead.startswith("a pointer") for each in good.values()):
        data.findings.warn("instead", "A failed download seems to have left something else than the text:", instead)
    if blank := [path for path, each in good.items() if not each.characters]:
        data.findings.warn("blank", "Files have only blanks:", blank)
    if mixed := [path for path, each in good.items() if len(each.ends) > 1]:
        data.findings.note("line_ends", "Lines end with CRLF and with LF in:", mixed)


def _describe(data: Data, files: list[File]) -> None:
    splits = {file.path: split_of(file.path) or "all" for file in files}
    for split in dict.fromkeys(splits.values()):
        data.card.count(split, {"files": data.number(path for path, each in splits.items() if each == split)})
    listing.duplicates(data, splits)
