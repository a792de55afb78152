"""Python's tracebacks in a log: which exceptions there are, and which of them is the first of its chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.diagnosis.lines import LogLine

HEAD = re.compile(r"Traceback \(most recent call last\)")
FRAME = re.compile(r'^\s*(?:[│|]\s*)?File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>\S+))?')
NAME = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
EXCEPTION = re.compile(rf"^\s{{0,4}}(?P<type>{NAME})(?:: (?P<message>.*)|:?)$")
LOOSE = re.compile(  # an exception's line that stands alone, as people paste it
    r"(?:^|[\s\"'`(>|‘“])(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))"
    r"(?:: ?|\s*\()(?P<message>.+)$"
)
CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause of the following exception"
)
WRAPPED_RANK = re.compile(r"^-- Process (?P<rank>\d+) terminated with the following error:")
IGNORED = re.compile(r"^\s*Exception ignored in|^\s*Exception in thread|^Error in atexit|^--- Logging error ---")
LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]python\d\.\d+[/\\]lib[/\\]"
    r"|<frozen |<string>|importlib|runpy\.py"
)
LAUNCHERS = (
    "ChildFailedError",
    "CalledProcessError",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SystemExit",
    "SignalException",
)
MESSAGE_LINES = 60


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback."""

    file: str
    line: int
    name: str

    @property
    def own(self) -> bool:
        """Whether the frame is in the user's code and not in a library."""
        return LIBRARY.search(self.file) is None


@dataclass(frozen=True)
class Raised:
    """One exception in the log.

    - `first`, `last`: the numbers of its first and its last line
    - `line`: the line that names the exception
    - `message`: everything that the exception says, up to MESSAGE_LINES lines
    - `chain`: the number of its chain; exceptions of one chain were raised while the first was handled
    - `ignored`: Python ignored the exception, as in a destructor
    - `full`: the log has its traceback, and not only the line that names it
    """

    first: int
    last: int
    line: LogLine
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    chain: int = 0
    rank: int | None = None
    ignored: bool = False
    full: bool = True

    @property
    def short_type(self) -> str:
        """The type without its module."""
        return self.type.rpartition(".")[2]

    @property
    def by_launcher(self) -> bool:
        """Whether a launcher raised it because a process that it had started failed."""
        return self.short_type in LAUNCHERS

    @property
    def text(self) -> str:
        """The type and everything that the exception says."""
        return f"{self.type}: {self.message}"

    @property
    def where(self) -> str | None:
        """The last frame in the user's own code, as `file:line in function`."""
        own = [frame for frame in self.frames if frame.own]
        return f"{own[-1].file}:{own[-1].line} in {own[-1].name}" if own else None


@dataclass
class _Open:
    """A traceback that is being read."""

    first: int
    chain: int
    rank: int | None
    ignored: bool
    frames: list[Frame] = field(default_factory=list)


def raised_in(lines: Sequence[LogLine]) -> list[Raised]:
    """The exceptions in the log, in its order: those with a traceback, and lines that name one without it."""
    found = list(_with_traceback(lines))
    covered = {number for one in found for number in range(one.first, one.last + 1)}
    alone = [one for line in lines if line.number not in covered and (one := _alone(line))]
    return sorted([*found, *alone], key=lambda one: one.line.number)


def _with_traceback(lines: Sequence[LogLine]) -> Iterator[Raised]:
    chain, chained, rank, ignored, index = 0, False, None, False, 0
    while index < len(lines):
        line = lines[index]
        if CHAINED.search(line.text):
            chained = True
        elif named := WRAPPED_RANK.search(line.text):
            rank = int(named["rank"])
        elif IGNORED.search(line.text):
            ignored = True
        elif HEAD.search(line.text):
            chain += 0 if chained else 1
            opened = _Open(line.number, chain, line.rank if line.rank is not None else rank, ignored)
            one, index = _read(lines, index + 1, opened)
            if one:
                yield one
            chained, rank, ignored = False, None, False
            continue
        elif not line.blank:
            chained, ignored = chained and index + 1 < len(lines), False
        index += 1


def _read(lines: Sequence[LogLine], index: int, opened: _Open) -> tuple[Raised | None, int]:
    """The exception whose frames begin at this index, and the index after it. Lines of other ranks are skipped."""
    skip_code = False
    while index < len(lines):
        line = lines[index]
        if line.rank != opened.rank and line.rank is not None and opened.rank is not None:
            index += 1
            continue
        if HEAD.search(line.text):
            return None, index
        frame = FRAME.match(line.text)
        if frame:
            opened.frames.append(Frame(frame["file"], int(frame["line"]), frame["name"] or "<module>"))
            skip_code = True
        elif skip_code and not _is_exception(line):
            skip_code = False  # the frame's line of code
        elif not line.blank and (named := EXCEPTION.match(line.text)):
            return _finished(lines, index, opened, named["type"], named["message"] or "")
        elif opened.frames and line.blank and not _frame_follows(lines, index):
            return None, index + 1
        index += 1
    return None, index


def _is_exception(line: LogLine) -> bool:
    """Whether the line after a frame is the exception itself, because the frame's file could not be read."""
    named = EXCEPTION.match(line.text)
    return bool(
        named and not line.text.startswith("    ") and re.search(r"(?:Error|Exception|Interrupt|Exit)$", named["type"])
    )


def _frame_follows(lines: Sequence[LogLine], index: int) -> bool:
    return any(FRAME.match(line.text) or EXCEPTION.match(line.text) for line in lines[index + 1 : index + 4])


def _finished(lines: Sequence[LogLine], index: int, opened: _Open, kind: str, message: str) -> tuple[Raised, int]:
    said, end = [message], index + 1
    while end < len(lines) and end - index < MESSAGE_LINES and not _ends(lines[end]):
        said.append(lines[end].text)
        end += 1
    named = lines[index]
    return (
        Raised(
            opened.first,
            lines[end - 1].number,
            named,
            kind,
            "\n".join(said).strip(),
            tuple(opened.frames),
            opened.chain,
            opened.rank if opened.rank is not None else named.rank,
            opened.ignored,
        ),
        end,
    )


def _ends(line: LogLine) -> bool:
    return (
        line.blank
        or bool(HEAD.search(line.text))
        or bool(CHAINED.search(line.text))
        or bool(IGNORED.search(line.text))
        or bool(re.match(r"^(?:E|I|W)\d{4} |^\[|^Epoch\b|^\d{4}-\d\d-\d\d|^```|^[A-Z]{4,}:", line.text))
    )


def _alone(line: LogLine) -> Raised | None:
    found = LOOSE.search(line.text)
    if found is None:
        return None
    return Raised(line.number, line.number, line, found["type"], found["message"], rank=line.rank, full=False)
