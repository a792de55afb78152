"""The lines of a log, without escape codes, progress bars' earlier states, and the prefixes that launchers add."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 2_000  # characters of a line that are looked at
MOST_LINES = 200_000
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f]")

# Who writes it: torch's exceptions, torchrun --tee, Horovod and mpirun, srun --label, Ray, and frameworks' own loggers.
RANKED = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\[rank\s?(?P<rank>\d+)\]:? ?",
        r"^\[default(?P<rank>\d+)\]: ?",
        r"^\[\d+,(?P<rank>\d+)\]<std(?:err|out)>: ?",
        r"^(?P<rank>\d{1,4}): (?=\S| {2})",
        r"^rank: *(?P<rank>\d+) \| ",
        r"^\(\w[\w.]* pid=\d+(?:, ip=[\d.]+)?\) ?",
    )
)
DATED = re.compile(
    r"^\[?\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ :|-]*"
    r"|^[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)? +\d+ [^\]]*\] ?"
)
LEVEL = re.compile(r"^(?:\[?(?:ERROR|CRITICAL|FATAL)\]?[ :|-]+)+(?=Traceback|[A-Za-z_.]*(?:Error|Exception)\b)")


@dataclass(frozen=True)
class LogLine:
    """One line: its number in the log (from 1), its text without prefixes, and its rank if a prefix names one."""

    number: int
    text: str
    rank: int | None = None

    @property
    def blank(self) -> bool:
        """Whether the line has no text."""
        return not self.text.strip()


def lines_of(text: str) -> list[LogLine]:
    """The log's lines. Of a log of more than MOST_LINES lines, the first tenth and the end are kept."""
    rows = list(enumerate(text.split("\n"), 1))
    if len(rows) > MOST_LINES:
        rows = rows[: MOST_LINES // 10] + rows[-MOST_LINES * 9 // 10 :]
    return [line for number, row in rows for line in _lines(number, row)]


def _lines(number: int, row: str) -> Iterator[LogLine]:
    last = row.rstrip("\r").rpartition("\r")[2]  # a progress bar overwrites its line; its last state counts
    yield _line(number, ESCAPES.sub("", last)[:LONGEST].rstrip())


def _line(number: int, text: str) -> LogLine:
    rank: int | None = None
    for pattern in RANKED:
        found = pattern.match(text)
        if found:
            text = text[found.end() :]
            rank = int(found["rank"]) if "rank" in pattern.groupindex else rank
            break
    text = DATED.sub("", text, count=1)
    return LogLine(number, LEVEL.sub("", text, count=1), rank)
