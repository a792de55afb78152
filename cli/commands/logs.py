"""The commands logs and metrics."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from typer import Option

from ..api import phases
from ..api.client import retry_unreachable
from ..api.follow import PATIENCE_SECONDS, LogReader, Reader, uninterrupted
from ..errors import INTERRUPTED, CliError
from ..results import LogPiece, Picture, prints
from ..session import Session, command, program, user_path
from ..show import plot, png, usage
from ..terminal_text import LogText, Text
from . import options, why_failed
from .follow import end_with, reader_of

FollowLog = Annotated[bool, Option("--follow", "-f", help="Wait until the run has ended and its log is complete.")]
Rank = Annotated[
    int | None,
    Option(min=0, metavar="N", help="The process whose log to print, 0 by default; for an elastic run, the job."),
]
Raw = Annotated[
    bool, Option("--raw", help="Print the log unchanged. Control characters in it can then act on your terminal.")
]
Offset = Annotated[
    int, Option(min=0, metavar="BYTES", help="Start at this byte, for example where an earlier command stopped.")
]
Png = Annotated[
    Path | None, Option("--png", metavar="FILE", help="Write the curves to this file. Needs the extra `png`.")
]

Nodes = Annotated[bool, Option("--nodes", help="Plot processors, memory and GPUs by node over time instead.")]
Why = Annotated[
    bool, Option("--why", help="Print only the lines of the log around the cause of a failed run's failure.")
]

WAIT_SECONDS = 20.0
NEW_SECONDS = 30.0  # a job that has just begun may print nothing for this time, because it imports its packages
WIDEST = 110  # characters; a curve needs no more


@command
@prints(LogPiece, each_line=True)
def logs(
    session: Session,
    run: options.Run,
    following: FollowLog = False,
    rank: Rank = None,
    offset: Offset = 0,
    raw: Raw = False,
    why: Why = False,
) -> None:
    """Print the log of a run, and follow it.

    Without --rank, the logs of an elastic run are merged, each line prefixed with its job, because any rank may be
    the one that logs.

    Control characters are shown as symbols (␛ for escape) and colours are removed, because a log may contain
    commands to the terminal; --raw prints the log unchanged. With --json, each piece of the log is one object, with
    the offset at which the next piece starts.

    --why prints the lines around the one that the run's diagnosis quotes first.

    Example: trainyard logs -f mnist-0123456789abcdef
    """
    if why and session.as_json:
        raise CliError(f"--why prints text. `{session.program} show {run} --json` has the quoted lines.", "bad_request")
    if why:
        place = why_failed.place(session, run, rank)
        sys.stdout.write(why_failed.around(place, LogReader(session.api, run, place.rank)))
        return
    reader = _reader(session, run, rank, offset)
    try:
        if following:
            _say_why_silent(session, run)
        _print_all(session, reader, following, None if raw else LogText())
    except KeyboardInterrupt:
        _print_how_to_resume(session, run, reader)
        raise typer.Exit(INTERRUPTED) from None
    except CliError:  # the login has expired, for example
        if reader.told:
            _print_how_to_resume(session, run, reader)
        raise
    if following:
        ended = retry_unreachable(lambda: session.api.get("runs", run), PATIENCE_SECONDS, session.outage)
        if not reader.told:
            session.remark(f"{run} is {ended['state']} and has no log: {session.program} show {run}", "dim")
        end_with(ended)
    elif not reader.complete:
        session.remark("The log may grow; -f follows it.", "dim")


def _say_why_silent(session: Session, run: str) -> None:
    """Say that the run waits for nodes, or has just begun, so that its log may be empty for some seconds."""
    record = retry_unreachable(lambda: session.api.get("runs", run), PATIENCE_SECONDS, session.outage)
    current = phases.phase(record)
    if current in (None, phases.ARCHIVE):  # the program has ended
        return
    seconds = phases.spent(record, datetime.now(UTC)).get(current, 0.0)
    if current != phases.TRAIN or seconds < NEW_SECONDS:
        session.remark(
            f"{run}: {current}, {phases.clock(seconds)}. The first lines come when the program prints.", "dim"
        )


def _print_how_to_resume(session: Session, run: str, reader: Reader) -> None:
    place = f" --rank {reader.rank} --offset {reader.told}" if isinstance(reader, LogReader) else ""
    session.remark(f"\nThe run continues. To continue reading: {session.program} logs -f {run}{place}")


def _reader(session: Session, run: str, rank: int | None, offset: int) -> Reader:
    """Return a reader of one rank's log. Without a rank and an offset, an elastic run gets a reader of every job,
    because any rank may be the logging rank.
    """
    if rank is None and not offset:
        record = retry_unreachable(lambda: session.api.get("runs", run), PATIENCE_SECONDS, session.outage)
        return reader_of(session.api, record)
    return LogReader(session.api, run, rank or 0, offset)


def _print_all(session: Session, reader: Reader, following: bool, shown: LogText | None) -> None:
    patience = PATIENCE_SECONDS if following else 0.0
    while not reader.complete:
        before = reader.offset
        text = retry_unreachable(
            lambda: reader.read(WAIT_SECONDS if following else 0.0),
            patience,
            session.outage,
        )
        with uninterrupted():
            if session.as_json and (text or reader.complete):
                piece: LogPiece = {
                    "offset": before,
                    "next_offset": reader.offset,
                    "complete": reader.complete,
                    "text": text,
                }
                session.print_json_line(piece)
            elif text:
                sys.stdout.write(text if shown is None else shown.feed(text, reader.complete))
                sys.stdout.flush()
            reader.told = reader.offset
        if reader.ranks and reader.rank not in reader.ranks and (reader.complete or not following):
            ranks = ", ".join(map(str, reader.ranks))
            raise CliError(f"There is no rank {reader.rank} in this run; it has logs of: {ranks}.", "no_rank")
        if reader.offset == before and not following:
            return


@command
@prints("GET runs/{run}/metrics", "GET runs/{run}/usage", Picture)
def metrics(
    session: Session,
    run: options.Run,
    name: options.Metrics = None,
    file: Png = None,
    nodes: Nodes = False,
) -> None:
    """Plot the curves of a run in the terminal, or into a PNG. With --nodes, plot how its nodes were used.

    Example: trainyard metrics mnist-0123456789abcdef --name test_accuracy --png curves.png
    """
    if nodes:
        _plot_nodes(session, run, name or [])
        return
    answer: dict[str, Any] = session.api.get("runs", run, "metrics", name=name[0] if name and len(name) == 1 else None)
    chosen = name or plot.telling(list(answer["series"]))
    curves = plot.curves_of(answer["series"], chosen)
    if not curves and not session.as_json:
        series = session.api.get("runs", run, "metrics")["series"] if name else answer["series"]
        session.remark(_none(session.api.get("runs", run), series, name), "dim")
    elif file and curves:
        png.draw(curves, run, user_path(file))
        session.print_result(Picture(run=run, png=str(user_path(file).resolve())), str(user_path(file)))
    else:
        session.print_result(answer, _pictures(curves, min(session.out.width, WIDEST)))
        if left_out := sorted(set(answer["series"]) - set(curves)) if not name else []:
            session.remark(f"More, with --name: {', '.join(left_out)}", "dim")


def _plot_nodes(session: Session, run: str, names: list[str]) -> None:
    answer: dict[str, Any] = session.api.get("runs", run, "usage")
    curves = usage.curves(answer["samples"], names)
    if not curves and not session.as_json:
        there = ", ".join(usage.metrics_of(answer["samples"]))
        session.remark(f"No {' or '.join(names)}. There are: {there}." if there else usage.NOTHING, "dim")
        return
    width = min(session.out.width, WIDEST)
    pictures = [
        Group(plot.plot(by_node, usage.titled(name), width, "minute"), Text()) for name, by_node in curves.items()
    ]
    session.print_result(answer, Group(*pictures, Text(answer["sentence"]), Text(answer["advice"] or "")))


def _pictures(curves: plot.Curves, width: int) -> Group:
    kinds = plot.panels(list(curves)).items()
    return Group(*(Group(plot.plot({n: curves[n] for n in names}, kind, width), Text()) for kind, names in kinds))


def _none(run: dict[str, Any], series: dict[str, Any], name: list[str] | None) -> str:
    if name and series:
        return f"No {' or '.join(name)}. There are: {', '.join(sorted(series))}."
    if not run["archived_at"]:
        return "No metrics yet."
    return (
        f"{run['run']} is {run['state']} and has no metrics: none in an output or ./outputs, in MLflow, or printed as "
        "name=value. If the log prints them in another form, describe the form: "
        f'{program()} tag {run["run"]} "metrics_pattern=loss: {{loss}}"'
    )
