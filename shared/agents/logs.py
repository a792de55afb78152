"""The tool `logs`: the diagnosis, and the end of a log or the lines before an offset."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta

from shared.agents.outside import Lines
from shared.agents.shown_run import diagnosis
from shared.agents.tools import Desk, ToolAnswer, arguments, run_or_drop

LINE_BYTES = 400  # bytes read per requested line
MOST_LINES = 200
BEYOND = 1 << 50  # an offset that no log has: the answer has only the size of the log

LogArguments = arguments(
    "LogArguments",
    "A run's log, from its end.",
    [
        ("run", Annotated[str, Meta(min_length=1, max_length=300, description="Names as for inspect.")]),
        ("rank", Annotated[int, Meta(ge=0, le=100_000, description="The process whose log to read.")], 0),
        ("lines", Annotated[int, Meta(ge=1, le=MOST_LINES)], 40),
        ("before", Annotated[int, Meta(ge=0, le=BEYOND, description="`before` of the last answer: older lines.")], 0),
    ],
)


def logs(desk: Desk, asked: Any) -> ToolAnswer:
    name = run_or_drop(desk, asked.run)["run"]
    end = asked.before or _read(desk, name, asked.rank, BEYOND)["log"]["size"]
    start = max(0, end - asked.lines * LINE_BYTES)
    live = _read(desk, name, asked.rank, start)
    run, log = live["run"], live["log"]
    lines, first = last_lines(log["text"].encode()[: end - start], start, asked.lines)
    facts, words = diagnosis(run)
    facts = {"run": name, "state": run["state"], "rank": asked.rank, "ranks": log["ranks"][:20], **facts}
    cut = (f"{first} older bytes of {log['size']}: ask again with before={first}.",) if first else ()
    more = () if log["complete"] else ("The log may still grow.",)
    return ToolAnswer({**facts, "before": first}, {**words, "log": Lines(lines)}, cut, more)


def _read(desk: Desk, run: str, rank: int, offset: int) -> dict[str, Any]:
    found: dict[str, Any] = desk.call("get_live", path={"run": run}, query={"rank": rank, "offset": offset})
    return found


def last_lines(data: bytes, start: int, most: int) -> tuple[list[str], int]:
    """Return the last lines of bytes that begin at `start` of a log, and the offset of the first returned line.

    A line that begins before `start` is left out. Earlier states of a progress bar are left out, too.
    """
    parts = re.findall(rb"[^\n]*\n|[^\n]+", data)
    if start and len(parts) > 1:
        start, parts = start + len(parts[0]), parts[1:]
    shown = parts[-most:]
    first = start + sum(len(part) for part in parts[: len(parts) - len(shown)])
    return [part.decode("utf-8", "replace").rstrip("\r\n").rpartition("\r")[2] for part in shown], first
