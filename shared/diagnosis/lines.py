"""The lines of a log, without escape codes, earlier states of progress bars, and the prefixes of launchers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shared.diagnosis.markdown import Part, parts_of

LONGEST, SHORTER = 2_000, 300  # characters examined of a line; of a line in a text of MANY characters
MANY = 1 << 20
MOST_LINES = 60_000
HEAD_CHARACTERS, TAIL_CHARACTERS = 2 << 20, 14 << 20  # of a longer log, only the beginning and the end are examined
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f]|^\ufeff")

# Prefixes by torch's exceptions, torchrun --tee, Horovod and mpirun, srun --label, accelerate, Ray, and frameworks' own
# loggers. Prefixes may be nested: `gh run view --log` adds the job and the step, Kubernetes the stream.
PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\[rank:?\s?(?P<rank>\d+)\]:? ?",
        r"^\[rank=(?P<rank>\d+)\]:? ?",
        r"^\[?default(?P<rank>\d+)\]?: ?",
        r"^\[\d+,(?P<rank>\d+)\]<std(?:err|out)>: ?",
        r"^(?P<rank>\d{1,4}): (?=\S| {2}|$)(?![\d.]+, [\d.]+ avg)",
        r"^rank: *(?P<rank>\d+) \| ",
        r"^\((?:\w[\w.]* )?(?:rank=\d+, )?pid=\d+(?:, ip=[\d.]+)?\) ?",
        r"^(?:stderr|stdout)(?:: | F | P )",
        r"^[^\t]{1,80}\t[^\t]{1,80}\t(?=\ufeff?\d{4}-\d\d-\d\dT)",
        r"^[0-9a-f]{8} \|\| ",
        r"^(?:> ?)+",
        r"^\ufeff?\[?\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?: \| | - |[ :|-])*",
        r"^(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d(?:\.\d+)? +\d+ [^\]]*\] ?",
        r"^(?P<level>[IWEFD]) \d\d-\d\d \d\d:\d\d:\d\d [\w.]+:\d+\] ?",
        r"^(?P<level>[IWEF]) (?=tensorflow/)",
        r"^[\w.-]{1,60}[_-]\d+ +\| ",
        r"^##\[error\]",
        r"^(?:\*\*|`{1,3})(?=[^\s*`])",
    )
)
LEVEL = re.compile(r"^(?:\[?(?:ERROR|CRITICAL|FATAL)\]?[ :|-]+)+(?=Traceback|[A-Za-z_.]*(?:Error|Exception)\b)")
GUESSES = re.compile(
    r"(?i)\b(?:potential|possible) (?:root )?(?:causes|reasons)\b.*|\bThis is either an? .*"
)  # Ray's, NCCL's
MAY_HAVE_PREFIX = re.compile(r"^[\[(\d>#*`IWEFDa-f\ufeffsr]|^[^\t]{1,80}\t|^[\w.-]{1,60} +\| ")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log.

    - `number`: its number in the log, from 1
    - `text`: its text without prefixes
    - `rank`: the rank that a prefix names
    - `part`: the number of the part of the text; a plain log is one part, an issue has one for each block of code
    - `prose`: the line is not of a log, but of a person beside it
    - `title`: the line is a title
    - `level`: the level that Google's loggers write: I, W, E or F
    """

    number: int
    text: str
    rank: int | None = None
    part: int = 0
    prose: bool = False
    title: bool = False
    level: str = ""

    @property
    def blank(self) -> bool:
        """Whether the line has no text."""
        return not self.text.strip()


def lines_of(text: str) -> list[LogLine]:
    """Return the log's lines. A log of more than MOST_LINES lines is cut to its first tenth and its end."""
    rows = list(_numbered(text))
    if len(rows) > MOST_LINES:
        rows = rows[: MOST_LINES // 10] + rows[-MOST_LINES * 9 // 10 :]
    parts = parts_of([row for _, row in rows])
    longest = LONGEST if sum(min(len(row), LONGEST) for _, row in rows) < MANY else SHORTER
    return [
        _line(number, row, longest, part) for (number, row), part in zip(rows, parts, strict=True) if not part.source
    ]


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines of the beginning and the end of a text, with their numbers."""
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        yield from enumerate(text.split("\n"), 1)
        return
    begin = len(text) - TAIL_CHARACTERS
    yield from enumerate(text[:HEAD_CHARACTERS].split("\n"), 1)
    yield from enumerate(text[begin:].split("\n"), text.count("\n", 0, begin) + 1)


def _line(number: int, row: str, longest: int, part: Part) -> LogLine:
    last = row.rstrip("\r").rpartition("\r")[2]  # a progress bar overwrites its line; its last state counts
    text, rank, level = ESCAPES.sub("", last)[:longest].rstrip(), None, ""
    for _ in range(4):
        found = next((found for prefix in PREFIXES if (found := prefix.match(text))), None) if _may(text) else None
        if found is None or not found.end():
            break
        rank = int(found["rank"]) if "rank" in found.re.groupindex and rank is None else rank
        level = found["level"] if "level" in found.re.groupindex else level
        text = text[found.end() :]
        if found.group().strip("*`") == "":  # Markdown's emphasis
            text = text.rstrip("*`")
    text = GUESSES.sub("", LEVEL.sub("", text, count=1))
    return LogLine(number, text, rank, part.number, part.prose, part.title, level)


def _may(text: str) -> bool:
    return MAY_HAVE_PREFIX.match(text) is not None
