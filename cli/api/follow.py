"""Following a run until its archive, and the run's log to the end."""

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
LOG_WAIT_SECONDS = 2.0  # of a long poll between two reads of the run's state
PATIENCE_SECONDS = 600.0  # without an answer of the API
EARLIER_RUNS = 50


class LogReader:
    """Reads one rank's log in pieces, without losing or repeating text when the connection is cut.

    The offset moves only once an answer has arrived whole, so a failed read can be repeated.
    """

    def __init__(self, api: Api, run: str, rank: int = 0, offset: int = 0) -> None:
        self._api, self._run, self._rank = api, run, rank
        self.rank = rank
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.offset, self.complete = offset, False
        self.told = offset  # the offset that the caller has shown; Ctrl-C may come between a read and the output
        self.ranks: tuple[int, ...] = ()

    def read(self, wait: float = 0.0) -> str:
        """Return the next piece of text. The piece is '' if no bytes came within `wait` seconds, or only a part of
        a character."""
        chunk = self._api.log(self._run, self._rank, self.offset, wait)
        self.offset, self.complete, self.ranks = chunk.next_offset, chunk.complete, chunk.ranks
        return self._decoder.decode(chunk.data, final=chunk.complete)


class MembersReader:
    """Reads the logs of an elastic run's jobs as one log. Each line begins with the short name of its job.

    A job is `m<member>-<attempt>`. The number of a job's log is the member's number, plus the number of members for
    each earlier attempt. `offset` counts the bytes of all logs together.
    """

    def __init__(self, api: Api, run: str, members: int) -> None:
        self._api, self._run, self._members = api, run, members
        self._readers = {0: LogReader(api, run)}
        self._rest: dict[int, str] = {}
        self.offset, self.complete = 0, False
        self.rank, self.ranks, self.told = 0, (), 0

    def read(self, wait: float = 0.0) -> str:
        """Return the lines that came since the last call, in the order of the jobs. A long poll can't wait for many
        logs at once, so this sleeps for up to POLL_SECONDS if no line came and `wait` is not 0."""
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
    """Delay Ctrl-C until the end of the block, to keep the output and the record of the output consistent."""
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


class Watcher(Protocol):
    """Receiver of the events of a followed run or drop."""

    def drop(self, drop: dict[str, Any]) -> None:
        """Receive the current drop, {} before its first upload is known. Called about twice a second."""

    def run(self, run: dict[str, Any]) -> None:
        """Receive the current run. Called about once a second."""

    def log(self, text: str) -> None:
        """Receive the next piece of the log, which may end anywhere between two characters."""

    @property
    def outage(self) -> OutageListener:
        """Return the listener for outages of the API. Following continues after an outage."""


def follow_run(api: Api, name: str, reader: Reader, watcher: Watcher) -> dict[str, Any]:
    """Report the run and its log to the watcher until the run is archived and the log has ended. Returns the run."""
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
    """Wait until the drop `route/name` closes after an upload. Returns the drop, also if it is still open after
    `patience` seconds.

    `before` is the drop as it was before the upload; a verdict that `before` already has is not the verdict on this
    upload. With {}, any closed state counts. Raises CliError with the reason if the drop is rejected.
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
    """Return whether the drop is sealed or rejected, and the verdict is newer than `before`: it has another opening
    time or a higher generation."""
    if drop.get("state") not in ("sealed", "rejected"):
        return False
    old = before.get("state") in ("sealed", "rejected") and before["opened_at"] == drop["opened_at"]
    return not old or before["generation"] < drop["generation"]


def find_drop(api: Api, route: str, name: str) -> dict[str, Any]:
    """Return the drop, or {} for a drop without a known upload."""
    try:
        drop: dict[str, Any] = api.get("drops", route, name)
    except NotFound:
        return {}
    return drop


def usual_times(api: Api, run: dict[str, Any]) -> dict[str, str]:
    """Return the usual duration of each phase of a run, in words, from the newest completed runs of the experiment."""
    try:
        listed = api.get("runs", experiment=run["experiment"], state="completed", limit=EARLIER_RUNS, details="true")
    except CliError:
        return dict(phases.DEFAULTS)  # only a convenience; following the run will report the problem
    return phases.usual(run, listed["runs"])
