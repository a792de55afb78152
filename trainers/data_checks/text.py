"""Text in UTF-8: which files of a folder are text, and what a piece of a file reveals about its encoding. Pure."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from .source import MARKERS, is_hidden

TOKENIZER = "tokenizer.json"
PIECE = 2**14  # characters; a longer file becomes several documents
_TWICE = re.compile("[\u00c2\u00c3][\u0080-\u00bf]")
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1f\x7f]")
_INSTEAD = {b"<!doctype html": "HTML", b"<html": "HTML", b"version https://git-lfs": "a pointer of Git LFS"}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_text(path: str) -> bool:
    """Return whether the trainer reads the file: not a marker, not tokenizer.json, and not hidden."""
    parts = path.split("/")
    return parts[-1] not in {*MARKERS, TOKENIZER} and not any(map(is_hidden, parts))


class TextFacts(NamedTuple):
    """Facts about the text of a file (see Decoding). `in_part`: only a part of the file was read."""

    problem: str
    marked: bool
    characters: int
    replaced: int
    twice: int
    marks: int
    controls: int
    ends: list[str]
    instead: str
    in_part: bool = False


class Decoding:
    """The text of one file, fed in pieces of bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.characters = 0
        self.marked = False  # begins with a byte order mark, which trainers skip
        self.replaced = 0  # U+FFFD: an earlier program could not read the text
        self.twice = 0  # characters that look as if UTF-8 was read as Latin-1 and written again: "Ã©" for "é"
        self.marks = 0  # byte order marks after the beginning, from joined files
        self.controls = 0  # characters that control a terminal
        self.ends: set[str] = set()  # of lines
        self.instead = ""  # the kind of content that a failed download left instead of text
        self.problem = ""
        self._bytes = 0

    def facts(self, in_part: bool) -> TextFacts:
        counts = self.characters, self.replaced, self.twice, self.marks, self.controls
        return TextFacts(self.problem, self.marked, *counts, sorted(self.ends), self.instead, in_part)

    def feed(self, piece: bytes, final: bool = False) -> bool:
        """Process the next bytes. Return False once there is a problem."""
        if not self._bytes:
            self.marked = piece.startswith(codecs.BOM_UTF8)
            start = piece[:80].lstrip().lower()
            self.instead = next((words for begin, words in _INSTEAD.items() if start.startswith(begin)), "")
            if piece.startswith(_UTF16):
                self.problem = "expected text in UTF-8, found UTF-16"
                return False
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            self.problem = f"expected text in UTF-8, found the byte 0x{byte:02x}: {error.reason}"
            return False
        self._bytes += len(piece)
        if "\0" in text:
            self.problem = "expected text in UTF-8, found a zero byte"
            return False
        self.characters += len(text) - text.isspace() * len(text)
        self.replaced += text.count("\N{REPLACEMENT CHARACTER}")
        self.marks += text.count("\ufeff") - (self.marked and self._bytes == len(piece))
        self.twice += sum(1 for _ in _TWICE.finditer(text))
        self.controls += sum(1 for _ in _CONTROLS.finditer(text))
        if (windows := text.count("\r\n")) < text.count("\n"):
            self.ends.add("LF")
        self.ends |= {"CRLF"} if windows else set()
        return True
