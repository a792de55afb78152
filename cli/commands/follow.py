"""Following a run to its end, and the handling of Ctrl-C meanwhile, for submit, retry, drop and logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from .. import show
from ..api.client import Api, retry_unreachable
from ..api.follow import PATIENCE_SECONDS, LogReader, MembersReader, Reader, follow_run, usual_times
from ..errors import INTERRUPTED, CliError, status_of
from ..session import Session
from ..show.live import Screen
from ..terminal_text import Console


def follow(session: Session, name: str) -> dict[str, Any]:
    """Show the run until its archive, then the result. Returns the run.

    With --json, the progress goes to standard error and the run to standard output. Ctrl-C asks whether to detach or to
    cancel the run. Detaching ends the command with status 130; canceling continues to the end of the canceled run.
    """
    console: Console = session.err if session.as_json else session.out
    try:
        run = retry_unreachable(lambda: session.api.get("runs", name), PATIENCE_SECONDS, session.outage)
        screen, reader = Screen(console, usual_times(session.api, run)), reader_of(session.api, run)
    except KeyboardInterrupt:
        _detach(session, name)
    session.remark(f"{name} on {run['cluster']}, {show.runs.node_words(run)}", "bold")
    while True:
        try:
            with explain_if_lost(session, f"logs -f {name}"), screen.shown():
                run = follow_run(session.api, name, reader, screen)
        except KeyboardInterrupt:
            _detach_or_cancel(session, name)
            continue
        if session.as_json:
            session.print_json(run)
        else:
            console.print(show.runs.result(run))
        return run


@contextmanager
def explain_if_lost(session: Session, command: str) -> Iterator[None]:
    """If the API refuses a call in the block, for example because a login expired, print that the run continues and
    how to follow it again."""
    try:
        yield
    except CliError:
        session.remark(f"The run continues. To follow it again: {session.program} {command}")
        raise


def reader_of(api: Api, run: dict[str, Any]) -> Reader:
    if run.get("elastic"):
        return MembersReader(api, run["run"], run["nodes"])
    return LogReader(api, run["run"])


def end_with(run: dict[str, Any]) -> None:
    """End the command with the exit status for the run's final state."""
    if status := status_of(run["state"]):
        raise typer.Exit(status)


def _detach_or_cancel(session: Session, name: str) -> None:
    """Ask the user. Returns after a cancel, to follow the end of the run; otherwise ends the command."""
    if _asks_to_cancel(session):
        try:
            session.api.post("runs", name, "cancel")
        except CliError as exc:
            session.remark(f"It could not be canceled: {exc}", "red")
        else:
            session.remark("Canceling. Press Ctrl-C again to stop waiting.", "yellow")
            return
    _detach(session, name)


def _detach(session: Session, name: str) -> NoReturn:
    session.remark(f"Detached. The run continues. To follow it again: {session.program} logs -f {name}")
    raise typer.Exit(INTERRUPTED)


def _asks_to_cancel(session: Session) -> bool:
    """Return whether the user chooses to cancel the run. Without a terminal, or after another Ctrl-C, the answer is
    no."""
    if not session.err.is_terminal:
        return False
    try:
        answer = session.err.input("\n[bold]Detach (the run continues) or cancel the run?[/] \\[d/c] ")
    except (KeyboardInterrupt, EOFError):
        session.remark("")  # the cursor is still behind the question
        return False
    return answer.strip().lower().startswith("c")
