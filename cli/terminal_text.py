"""What comes from outside, shown as text: nothing that a log, a name or an error holds can speak to the terminal.

A terminal obeys escape sequences: they set its title, write to the clipboard, clear what was said, and more. Whoever
may upload chooses a drop's name, and a program its log. So everything that the commands print goes through this module:
`Text` and `Console` stand for rich's own everywhere in this package, and `LogText` is for logs.
"""

from __future__ import annotations

import re
from typing import Any

from rich import console
from rich import text as rich_text

# Control characters but tab and newline; what reorders text or ends a line unseen; tags, which nobody sees; halves of
# surrogate pairs, which can't be written at all. Joiners stay: scripts and emoji need them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
PICTURES, DELETE = 0x2400, "\u2421"
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# What may be the beginning of a colour at the end of a piece.
UNFINISHED = re.compile(r"\x1b(\[[0-9;:]{0,32})?\Z")


def visible(text: str) -> str:
    """The text with each unsafe character as a sign for it: ESC as ␛, others as \\x9b or \\u202e."""
    return UNSAFE.sub(lambda match: _sign(match[0]), text)


def one_line(text: str) -> str:
    """As `visible`, for a name: a newline in it can't begin a line of its own."""
    return visible(text).replace("\n", "␊")


def _sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(PICTURES + code)
    if code == 0x7F:
        return DELETE
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Text(rich_text.Text):
    """rich's Text, of visible characters only."""

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
    """rich's Console, which takes plain strings as they are: no markup, no emoji codes, visible characters only.

    `trims`: what a table or a plot (U+2800) pads its lines with is left out in a file or a pipe.
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
        self.file.flush()  # whoever follows a run through a pipe sees each line at once

    def render_str(self, text: str, **kwargs: Any) -> rich_text.Text:
        return super().render_str(visible(text), **kwargs)


class LogText:
    """Makes a log that comes in pieces visible. Its colours are left out; a lone carriage return begins a new line, so
    that a progress bar stays readable and nothing that was said is written over."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str, final: bool = False) -> str:
        """What can be shown of the log so far and was not yet. With `final`, all of it."""
        whole, self._rest = self._rest + piece, ""
        if not final and (unfinished := UNFINISHED.search(whole)):
            whole, self._rest = whole[: unfinished.start()], unfinished[0]
        plain = COLOUR.sub("", whole)
        if not final and plain.endswith("\r"):  # a newline may follow, even behind a colour
            plain, self._rest = plain[:-1], "\r" + self._rest
        return visible(plain.replace("\r\n", "\n").replace("\r", "\n"))
