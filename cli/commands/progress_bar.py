"""The progress bar of uploads and downloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ..session import Session


@contextmanager
def bar(session: Session, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of bytes on a terminal; elsewhere show nothing. Yields a function for adding a number of
    bytes. After Ctrl-C, a message says that repeating the command resumes.
    """
    columns = (TextColumn(words), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=session.err, disable=not session.err.is_terminal, transient=True) as progress:
        task = progress.add_task(words, total=total)
        try:
            yield lambda more: progress.advance(task, more)
        except KeyboardInterrupt:
            session.remark("Stopped. Run the same command again to continue.")
            raise
