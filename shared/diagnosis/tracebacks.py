"""Python's tracebacks in a log: the exceptions, and the first exception of each chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from shared.diagnosis.lines import LogLine
from shared.diagnosis.raised import Frame, Raised
from shared.diagnosis.steps import reports_step

HEAD = re.compile(r"Traceback \(most recent call last\)")
NAMED_HEAD = re.compile(r"^(?P<type>[A-Za-z][\w.]*)\s{3,}Traceback \(most")  # IPython's
FRAMES = (  # Python's own, IPython's, and rich's
    re.compile(r'^\s*(?:[│|]\s*)?File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>\S+))?'),
    re.compile(r"^\s*File (?P<file>[^\s\"]+):(?P<line>\d+)(?:, in (?P<name>\w+))?"),
    re.compile(r"^[│|]\s*(?P<file>\S+):(?P<line>\d+) in (?P<name>\S+)"),
    re.compile(r"^\s*(?P<file>[~/]\S+\.py) in (?P<name>\w+)\((?P<line>)"),
)
NAME = r"(?:(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z]\w*)"
EXCEPTION = re.compile(rf"^\s{{0,4}}(?P<type>{NAME})(?:: (?P<message>.*)|:?)$")
LOOSE = re.compile(  # an exception's line without a traceback, as people paste it
    r"(?:^|[\s\"'`(>|‘“*]|[^\x00-\x7f])(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt)|Exception))"
    r"(?:(?:: ?|\s*\()(?P<message>.+)|: *)$"
    r"|<class '(?P<class>[\w.]+(?:Error|Exception))'>, ?(?P<told>.+)$"
    r"|^(?P<dotted>(?:[a-z_]\w*\.)+(?:_?[A-Z]\w*|error|timeout)|(?:[A-Z][a-z]+){2,}): (?P<said>.+)$"
    r"|^#{1,6} (?:.*\W)?(?P<titled>[A-Z]\w*(?:Error|Exception))$"
    r"|^(?P<bare>(?:[A-Za-z_]\w*\.)+[A-Z]\w*(?:Error|Exception)|[A-Z]\w*Error)$"
)
NOT_SAID = re.compile(r"^\s*(?:raise|except|assert|return|if|elif|import|from|with|throw)\b|^[+-] ")
CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause of the following exception"
)
CUT_TYPE = re.compile(r"(?<!Error)(?<!Exception)(?<!Exit)(?<!Interrupt)(?<!Iteration)(?<!Empty)(?<!Timeout)$")
WRAPPED = re.compile(r"[a-z][a-z]+[ .]")  # the rest of a sentence that a person broke into lines
WRAPPED_RANK = re.compile(r"^-- Process (?P<rank>\d+) terminated with the following error:")
IGNORED = re.compile(r"^\s*Exception ignored in|^\s*Exception in thread|^Error in atexit|^--- Logging error ---")
AT_EXIT = re.compile(r"^(?:__del__|_run_finalizers|_exitfunc|_exit_function|_run_exitfuncs|_shutdown_workers)$")
UNRAISED = re.compile(r"^\s*Exception ignored in")  # a destructor's exception, which may have no traceback
MESSAGE_LINES = 60


@dataclass
class _Open:
    """A traceback that is being read."""

    head: LogLine
    chain: int
    rank: int | None
    ignored: bool
    frames: list[Frame] = field(default_factory=list)


def raised_in(lines: Sequence[LogLine]) -> list[Raised]:
    """Return the exceptions in the log, in order: exceptions with a traceback, and exceptions that a line only
    names.
    """
    found = list(_with_traceback(lines))
    covered = {number for one in found for number in range(one.first, one.last + 1)}
    before, after = [None, *lines[:-1]], [*lines[1:], None]
    alone = [
        replace(one, ignored=last is not None and UNRAISED.search(last.text) is not None)
        for last, line, then in zip(before, lines, after, strict=True)
        if line.number not in covered and (one := _alone(line, then))
    ]
    return sorted([*found, *alone], key=lambda one: one.line.number)


def _with_traceback(lines: Sequence[LogLine]) -> Iterator[Raised]:
    chain, chained, rank, ignored, was_ignored, index = 0, False, None, False, False, 0
    while index < len(lines):
        line = lines[index]
        if CHAINED.search(line.text):
            chained, ignored = True, was_ignored
        elif named := WRAPPED_RANK.search(line.text):
            rank = int(named["rank"])
        elif IGNORED.search(line.text):
            ignored = True
        elif HEAD.search(line.text):
            chain += 0 if chained else 1
            opened = _Open(line, chain, line.rank if line.rank is not None else rank, ignored)
            one, index = _read(lines, index + 1, opened)
            if one:
                yield one
            chained, rank, ignored, was_ignored = False, None, False, ignored
            continue
        elif _begins_without_head(lines, index):
            chain += 0 if chained else 1
            one, index = _read(lines, index, _Open(line, chain, line.rank, ignored))
            if one:
                yield one
            chained, rank, ignored = False, None, False
            continue
        elif not line.blank:
            chained, ignored = chained and index + 1 < len(lines), False
        index += 1


def _is_last(lines: Sequence[LogLine], index: int) -> bool:
    return all(line.blank for line in lines[index + 1 :])


def _begins_without_head(lines: Sequence[LogLine], index: int) -> bool:
    """Return whether frames begin here without their first line, because a person pasted only the end of a
    traceback.
    """
    after = lines[index + 1].text if index + 1 < len(lines) else ""
    return bool(FRAMES[0].match(lines[index].text)) and (
        after.startswith("    ") or bool(FRAMES[0].match(after) or EXCEPTION.match(after))
    )


def _read(lines: Sequence[LogLine], index: int, opened: _Open) -> tuple[Raised | None, int]:
    """Return the exception whose frames begin at this index, and the index after it. Lines of other ranks are
    skipped.
    """
    skip_code = False
    while index < len(lines):
        line = lines[index]
        if line.rank != opened.rank and line.rank is not None and opened.rank is not None:
            index += 1
            continue
        if HEAD.search(line.text) or line.part != opened.head.part or (opened.frames and reports_step(line.text)):
            return _cut(lines, index, opened), index
        frame = _frame(line.text)
        if frame:
            opened.frames.append(Frame(frame["file"], int(frame["line"] or 0), frame["name"] or "<module>"))
            skip_code = True
        elif skip_code and not _is_exception(line):
            skip_code = False  # the frame's line of code
        elif not line.blank and (named := EXCEPTION.match(line.text)):
            if named.end("type") == len(line.text) and CUT_TYPE.search(named["type"]) and _is_last(lines, index):
                return _cut(lines, index, opened), len(lines)
            return _finished(lines, index, opened, named["type"], named["message"] or "")
        elif opened.frames and line.blank and not _frame_follows(lines, index):
            return _cut(lines, index, opened), index + 1
        index += 1
    return _cut(lines, index, opened), index


def _cut(lines: Sequence[LogLine], index: int, opened: _Open) -> Raised | None:
    """Return a traceback whose exception is missing from the log; an interrupted one if a person pressed Ctrl+C
    before.
    """
    if not opened.frames and (index < len(lines) and lines[index].part == opened.head.part):
        return None
    named = NAMED_HEAD.match(opened.head.text)
    kind = "KeyboardInterrupt" if "^C" in opened.head.text else named["type"] if named else ""
    return Raised(
        opened.head.number, lines[index - 1].number, lines[index - 1], kind, "", tuple(opened.frames), opened.chain,
        opened.rank, opened.ignored,
    )  # fmt: skip


def _frame(text: str) -> re.Match[str] | None:
    return next((found for pattern in FRAMES if (found := pattern.match(text))), None)


def _is_exception(line: LogLine) -> bool:
    """Return whether the line after a frame is the exception itself, because the frame's file could not be read."""
    named = EXCEPTION.match(line.text)
    return bool(
        named and not line.text.startswith("    ") and re.search(r"(?:Error|Exception|Interrupt|Exit)$", named["type"])
    )


def _frame_follows(lines: Sequence[LogLine], index: int) -> bool:
    return any(_frame(line.text) or EXCEPTION.match(line.text) for line in lines[index + 1 : index + 4])


def _finished(lines: Sequence[LogLine], index: int, opened: _Open, kind: str, message: str) -> tuple[Raised, int]:
    said, end = [message], index + 1
    while end < len(lines) and end - index < MESSAGE_LINES and not _ends(lines[end], lines[index]):
        said.append(lines[end].text)
        end += 1
    named = lines[index]
    return (
        Raised(
            opened.head.number,
            lines[end - 1].number,
            named,
            kind,
            "\n".join(said).strip(),
            tuple(opened.frames),
            opened.chain,
            opened.rank if opened.rank is not None else named.rank,
            opened.ignored or any(AT_EXIT.match(frame.name) for frame in opened.frames),
        ),
        end,
    )


def _ends(line: LogLine, named: LogLine) -> bool:
    return (
        line.blank
        or line.rank != named.rank
        or line.part != named.part
        or bool(HEAD.search(line.text))
        or bool(CHAINED.search(line.text))
        or bool(IGNORED.search(line.text))
        or line.prose
        or reports_step(line.text)
        or bool(re.match(r"^(?:E|I|W)\d{4} |^\[|^\d{4}-\d\d-\d\d|^[A-Z]{4,}:", line.text))
    )


def _alone(line: LogLine, then: LogLine | None) -> Raised | None:
    """Return the exception that a line names without a traceback. The message may be on the next line."""
    found = LOOSE.search(line.text)
    if found is None or NOT_SAID.match(line.text):
        return None
    message = (
        found["message"]
        or found["said"]
        or found["told"]
        or (then.text.strip() if then and not (found["bare"] or found["titled"]) else "")
    )
    if then and message and WRAPPED.match(then.text):
        message += f" {then.text}"
    return Raised(
        line.number,
        line.number,
        line,
        found["type"] or found["class"] or found["titled"] or found["dotted"] or found["bare"],
        message,
        rank=line.rank,
        full=False,
    )
