"""`logs RUN --why`: the place in the log that shows why a run failed."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.follow import LogReader
from ..errors import CliError
from ..session import Session
from ..terminal_text import LogText, one_line

BEFORE, AFTER = 12, 6  # lines around the quoted one


@dataclass(frozen=True)
class Place:
    """A line of a rank's log: the number (0 if unknown), and a part of the text. `summary` explains its importance."""

    rank: int
    number: int
    text: str
    summary: str


def place(session: Session, run: str, rank: int | None) -> Place:
    """Return the first line quoted by the run's diagnosis. Raises CliError without a quoted line."""
    found = session.api.get("runs", run).get("diagnosis")
    if not found or not found["evidence"]:
        summary = found["summary"] if found else "Only a failed run that is archived has a diagnosis."
        raise CliError(f"No line of the log of run {run} shows why it failed. {summary}", "no_diagnosis")
    quotes = [each for each in found["evidence"] if rank is None or each["rank"] in (rank, None)]
    quote = (quotes or found["evidence"])[0]
    of_rank = quote["rank"] if quote["rank"] is not None else rank
    return Place(of_rank or 0, quote["number"], quote["text"], found["summary"])


def around(its: Place, reader: LogReader) -> str:
    """Return the lines around the place with their numbers, the quoted line marked by `>`, and the summary."""
    lines = _whole(reader).splitlines()
    at = _index(lines, its)
    if at is None:
        return f"{one_line(its.summary)}\n> {one_line(its.text)}\n"
    begin = max(0, at - BEFORE)
    shown = enumerate(lines[begin : at + AFTER + 1], begin + 1)
    rows = [f"{'>' if number == at + 1 else ' '} {number:6} {one_line(line)}\n" for number, line in shown]
    return f"{one_line(its.summary)}\n{''.join(rows)}"


def _whole(reader: LogReader) -> str:
    """Return the log so far, without control characters."""
    text, shown, before = "", LogText(), -1
    while not reader.complete and reader.offset != before:
        before = reader.offset
        text += shown.feed(reader.read(), reader.complete)
    return text


def _index(lines: list[str], its: Place) -> int | None:
    """Return the index of the quoted line: by number, or of the last line with the quoted text."""
    if 0 < its.number <= len(lines) and its.text in lines[its.number - 1]:
        return its.number - 1
    return next((index for index in range(len(lines) - 1, -1, -1) if its.text in lines[index]), None)
