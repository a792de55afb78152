"""Follow a run to its archive, and a log to its end."""

from __future__ import annotations

import codecs
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from ..errors import CliError, NotFound
from . import phases
from .api_outage import OutageListener
from .client import Api, retry_unreachable

POLL_SECONDS = 0.5
LOG_WAIT_SECONDS = 2.0  # of a long poll between two looks at the run's state
PATIENCE_SECONDS = 600.0  # without an answer of the API
EARLIER_RUNS = 50


class LogReader:
    """Reads one rank's log piece by piece. Nothing is lost or doubled, however often the connection is cut.

    The offset moves only when an answer has arrived whole, so a failed read is simply made again.
    """

    def __init__(self, api: Api, run: str, rank: int = 0, offset: int = 0) -> None:
        self._api, self._run, self._rank = api, run, rank
        self.rank = rank
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.offset, self.complete = offset, False
        self.told = offset  # what its user has shown so far; Ctrl-C may come between a read and that
        self.ranks: tuple[int, ...] = ()

    def read(self, wait: float = 0.0) -> str:
        """The next piece of text, '' if nothing came within `wait` seconds, or the beginning of a character only."""
        chunk = self._api.log(self._run, self._rank, self.offset, wait)
        self.offset, self.complete, self.ranks = chunk.next_offset, chunk.complete, chunk.ranks
        return self._decoder.decode(chunk.data, final=chunk.complete)


class MembersReader:
    """Reads the logs of all jobs of an elastic run as one: line by line, each behind its job's short name.

    A job is `m<member>-<attempt>`; its log's number is the member's, plus the number of members for each attempt
    before it. `offset` counts the bytes of all of them.
    """

    def __init__(self, api: Api, run: str, members: int) -> None:
        self._api, self._run, self._members = api, run, members
        self._readers = {0: LogReader(api, run)}
        self._rest: dict[int, str] = {}
        self.offset, self.complete = 0, False
        self.rank, self.ranks, self.told = 0, (), 0

    def read(self, wait: float = 0.0) -> str:
        """The lines that came since the last call, in the order of the jobs. Many logs can't be waited for at once, so
        where nothing came it waits for a moment."""
        text, unread = "", list(self._readers)
        while unread:
            text += "".join(self._lines(number, self._readers[number]) for number in unread)
            numbers = {number for reader in self._readers.values() for number in reader.ranks}
            unread = sorted(numbers - self._readers.keys())
            self._readers |= {number: LogReader(self._api, self._run, number) for number in unread}
        before, self.offset = self.offset, sum(reader.offset for reader in self._readers.values())
        self.complete = all(reader.complete for reader in self._readers.values())
        if wait and self.offset == before and not self.complete:
            time.sleep(min(wait, POLL_SECONDS))
        return text

    def _lines(self, number: int, reader: LogReader) -> str:
        if reader.complete:
            return ""
        *lines, rest = (self._rest.get(number, "") + reader.read()).split("\n")
        if reader.complete and rest:
            lines, rest = [*lines, rest], ""
        self._rest[number] = rest
        attempt, member = divmod(number, self._members)
        return "".join(f"m{member}-{attempt + 1} | {line}\n" for line in lines)


Reader = LogReader | MembersReader


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back to the end of the block: what was shown, and what is remembered of it, stay one."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


class Watcher(Protocol):
    """Who is told of what a follow sees."""

    def drop(self, drop: dict[str, Any]) -> None:
        """The drop as it is now, {} while no upload to it was seen; called about twice a second."""

    def run(self, run: dict[str, Any]) -> None:
        """The run as it is now; called about once a second."""

    def log(self, text: str) -> None:
        """The next piece of the log, cut anywhere between two characters."""

    @property
    def outage(self) -> OutageListener:
        """Who hears that the API does not answer, and that it does again; the follow goes on."""


def follow_run(api: Api, name: str, reader: Reader, watcher: Watcher) -> dict[str, Any]:
    """Tell the watcher all that happens until the run is archived and its log told to the end. Returns the run."""
    while True:
        began, before = time.monotonic(), reader.offset
        run: dict[str, Any] = retry_unreachable(lambda: api.get("runs", name), PATIENCE_SECONDS, watcher.outage)
        watcher.run(run)
        text = retry_unreachable(partial(_log, reader, run), PATIENCE_SECONDS, watcher.outage)
        watcher.log(text)
        came = reader.offset > before
        if run.get("archived_at") and (reader.complete or not came):
            return run
        if not came:
            time.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - began)))


def _log(reader: Reader, run: dict[str, Any]) -> str:
    if reader.complete:
        return ""
    try:
        return reader.read(LOG_WAIT_SECONDS if run["state"] == "running" else 0.0)
    except NotFound:  # a run that never reached a node has no log
        return ""


def wait_for_drop(
    api: Api, target: str, before: dict[str, Any], watcher: Watcher, patience: float = math.inf
) -> dict[str, Any]:
    """Wait until the drop `route/name` closes after an upload, and return it, or as it is after `patience` seconds.

    `before` is the drop as it was before the upload: a state that it had then says nothing of what was uploaded since.
    With {} any closed state will do. Raises CliError with the reason if it is rejected.
    """
    route, _, name = target.partition("/")
    deadline = time.monotonic() + patience
    while True:
        drop = retry_unreachable(lambda: find_drop(api, route, name), PATIENCE_SECONDS, watcher.outage)
        watcher.drop(drop)
        if _is_closed(drop, before):
            if drop["state"] == "rejected":
                raise CliError(f"Drop {target} was rejected. {drop['why']}", drop.get("code", ""))
            return drop
        if time.monotonic() > deadline:
            return drop
        time.sleep(POLL_SECONDS)


def _is_closed(drop: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether the drop is closed, by a verdict that is not from before the upload: each opening has its own time."""
    if drop.get("state") not in ("sealed", "rejected"):
        return False
    old = before.get("state") in ("sealed", "rejected") and before["opened_at"] == drop["opened_at"]
    return not old or before["generation"] < drop["generation"]


def find_drop(api: Api, route: str, name: str) -> dict[str, Any]:
    """The drop, or {} while no upload to it was seen."""
    try:
        drop: dict[str, Any] = api.get("drops", route, name)
    except NotFound:
        return {}
    return drop


def usual_times(api: Api, run: dict[str, Any]) -> dict[str, str]:
    """What is usual for each phase of such a run, from the newest completed runs of its experiment."""
    try:
        listed = api.get("runs", experiment=run["experiment"], state="completed", limit=EARLIER_RUNS, details="true")
    except CliError:
        return dict(phases.DEFAULTS)  # a nicety; the follow itself will say what is wrong
    return phases.usual(run, listed["runs"])
