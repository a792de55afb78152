"""drop, fetch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from .. import fetch as fetching
from .. import given, upload
from ..errors import CliError
from ..follow import find_drop, wait_for_drop
from ..session import Session, command, user_path
from ..watch import Screen
from . import options
from .following import end_with, follow

POLL_SECONDS = 1.0


@command
def drop(
    session: Session,
    source: options.Source,
    target: options.Target,
    parameter: options.Parameters = None,
    account_url: options.AccountUrl = "",
    following: options.Follow = False,
) -> None:
    """Upload a folder as a drop, which makes it a run.

    Once interrupted, the same command goes on where it was: files that are there already, by size and MD5, are left
    alone. The marker that closes the drop is written last.

    Route, job file and parameters are checked before anything is uploaded. Parameters become a job file of the drop.

    Example: trainyard drop ./digits mnist/digits-1 -p epochs=5 --follow
    """
    source = user_path(source)
    route, _, name = target.removeprefix("drops/").strip("/").partition("/")
    name = name or source.resolve().name
    wanted = upload.items(source, route, name)
    values = given.parameters(parameter)
    job = given.job_file(source, values)
    given.check_route(session.api, route, job and job[1])
    before = find_drop(session.api, route, name) if following else {}
    with (
        upload.opened(session.profile, account_url) as container,
        given.written(wanted, f"{route}/{name}", job if values else None) as files,
        _bar(session, "uploading", sum(i.size for i in files)) as bar,
    ):
        done = upload.upload(container, f"{route}/{name}", files, bar)
    told = {
        "drop": f"{route}/{name}",
        "files": done.files,
        "bytes": done.bytes,
        "kept": done.kept,
        "closed": done.marked,
    }
    words = f"{done.files:,} files, {done.bytes:,} bytes, uploaded to drops/{route}/{name}"
    kept = f"; {done.kept:,} were there" if done.kept else ""
    if not following:
        session.tell(told, words + kept)
        session.remark(f"Watch it: {session.program} show {route}/{name}", "dim")
        return
    session.remark(words + kept)
    with Screen(session.err, {}).shown() as screen:
        run = wait_for_drop(session.api, route, name, before.get("generation", 0) if done.marked else -1, screen)
    end_with(follow(session, run))


@command
def fetch(
    session: Session,
    run: options.Run,
    to: options.To = None,
    only: options.Only = None,
    wait: options.Wait = False,
) -> None:
    """Download a run's models, logs and metrics.

    Each file is checked against the run's manifest before it gets its name. A failed run has logs and no model; the
    exit status tells. Once interrupted, the same command goes on.

    Example: trainyard fetch mnist-0123456789abcdef --only models --to ./model
    """
    found = _artifacts(session, run, wait)
    folder = user_path(to or Path(run))
    everything = [fetching.File.of(row) for row in found["files"]]
    files = fetching.chosen(everything, only or [])
    if only and not files:
        _tell_missing(session, run, only, everything)
    with _bar(session, "fetching", sum(file.size for file in files)) as bar:
        new = fetching.fetch(session.api, run, files, folder, bar)
    size = sum(file.size for file in files)
    told = {
        "run": run,
        "folder": str(folder.resolve()),
        "files": [file.name for file in files],
        "bytes": size,
        "new": len(new),
    }
    session.tell(told, f"{len(files):,} files, {size:,} bytes, in {folder}; {len(new):,} new, all as the manifest says")
    ended = session.api.get("runs", run)
    if ended["state"] != "completed":
        session.remark(f"{run} is {ended['state']}: what it left behind is no finished model.", "yellow")
    end_with(ended)


def _artifacts(session: Session, run: str, wait: bool) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = session.api.get("runs", run, "artifacts")
        if found["complete"]:
            return found
        if not wait:
            raise CliError(f"{run} is not archived yet. --wait waits for it.", "not_archived")
        time.sleep(POLL_SECONDS)


def _tell_missing(session: Session, run: str, only: list[str], files: list[fetching.File]) -> None:
    state = session.api.get("runs", run)["state"]
    there = ", ".join(sorted({file.name.partition("/")[0] for file in files})) or "nothing"
    session.remark(f"{run} is {state} and has no {' or '.join(only)}. It has: {there}.", "red")
    end_with({"state": state})
    raise typer.Exit(3)


@contextmanager
def _bar(session: Session, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar of bytes on a terminal, nothing elsewhere. Gives what is called with each further number."""
    columns = (TextColumn(words), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=session.err, disable=not session.err.is_terminal, transient=True) as progress:
        task = progress.add_task(words, total=total)
        yield lambda more: progress.advance(task, more)
