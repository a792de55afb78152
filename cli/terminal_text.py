"""Safe output of outside text: nothing in a log, a name or an error can control the terminal.

A terminal obeys escape sequences, which can set its title, write to the clipboard, erase earlier output, and more.
Anyone who may upload chooses the names of drops, and a program chooses the text of its log. All output of the commands
therefore goes through this module: `Text` and `Console` replace rich's classes everywhere in this package, and
`LogText` is for logs.
"""

from __future__ import annotations

import re
from typing import Any

from rich import console
from rich import text as rich_text

# Control characters except tab and newline; characters that invisibly reorder text or end a line; invisible tags; and
# halves of surrogate pairs, which can't be written at all. Joiners stay: scripts and emoji need them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
PICTURES, DELETE = 0x2400, "\u2421"
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# A possible beginning of a colour at the end of a piece.
UNFINISHED = re.compile(r"\x1b(\[[0-9;:]{0,32})?\Z")


def visible(text: str) -> str:
    r"""Return the text with a visible symbol for each unsafe character: ESC becomes ␛, others become \x9b or \u202e."""
    return UNSAFE.sub(lambda match: _sign(match[0]), text)


def one_line(text: str) -> str:
    """Return the visible text on one line: a newline in a name must not begin another line."""
    return visible(text).replace("\n", "␊")


def _sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(PICTURES + code)
    if code == 0x7F:
        return DELETE
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Text(rich_text.Text):
    """rich's Text, limited to visible characters."""

    def __init__(self, text: str = "", *args: Any, **kwargs: Any) -> None:
        super().__init__(visible(text), *args, **kwargs)

    def append(self, text: rich_text.Text | str, style: Any = None) -> rich_text.Text:
        return super().append(visible(text) if isinstance(text, str) else text, style)

    @classmethod
    def assemble(cls, *parts: Any, **kwargs: Any) -> Text:
        made = super().assemble(*parts, **kwargs)
        assert isinstance(made, Text)
        return made


class Console(console.Console):
    """rich's Console, which prints plain strings unchanged: no markup, no emoji codes, visible characters only.

    `trims`: removes the padding (spaces and U+2800) at the end of each line, for a file or a pipe.
    """

    def __init__(self, trims: bool = False, **kwargs: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **kwargs)
        self._trims = trims

    def print(self, *objects: Any, **kwargs: Any) -> None:
        if not self._trims:
            super().print(*objects, **kwargs)
            return
        with self.capture() as captured:
            super().print(*objects, **kwargs)
        self.file.write(re.sub(r"[ \t\u2800]+$", "", captured.get(), flags=re.MULTILINE))
        self.file.flush()  # a reader of a pipe sees each line at once

    def render_str(self, text: str, **kwargs: Any) -> rich_text.Text:
        return super().render_str(visible(text), **kwargs)


class LogText:
    """Makes a log in pieces visible. Colours are removed. A lone carriage return begins a new line, to keep progress
    bars readable and overwrite no text.
    """

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str, final: bool = False) -> str:
        """Return the newly visible text after this piece. With `final`, return the remaining text."""
        whole, self._rest = self._rest + piece, ""
        if not final and (unfinished := UNFINISHED.search(whole)):
            whole, self._rest = whole[: unfinished.start()], unfinished[0]
        plain = COLOUR.sub("", whole)
        if not final and plain.endswith("\r"):  # a newline may follow, even after a colour
            plain, self._rest = plain[:-1], "\r" + self._rest
        return visible(plain.replace("\r\n", "\n").replace("\r", "\n"))
