"""The memory of the checks of a running run: facts about its log, from one check to the next. Pure.

The memory travels in the message of the next check, so it needs no store and no process that stays alive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shared.diagnosis.steps import reports_step
from shared.kernel.parsing import convert
from shared.kernel.storage import Growth
from shared.runs.pulse import NodePulse, Pulse

KEPT_TEXT = 6_000  # characters of the end of the log
KEPT_PACES = 30
EVALUATES = re.compile(r"(?i)^\W*(?:val(?:id(?:ation)?)?|eval(?:uat\w+)?|test(?:ing)?)\b")  # rank 0 alone may do it
EACH_SECONDS = 60.0  # between two checks
PAUSE, GAPS = 120.0, 3  # seconds, and multiples of the time between two steps, that count as a pause
LISTED_EACH = 10  # checks; a listing finds the logs of further ranks


@dataclass(frozen=True)
class Observed:
    """The log that the checks read, the position in it, when each rank's log grew (Unix seconds), and the observed
    paces.

    - `read_to`: when the part of the log that is read was written
    - `listed_size`: the log's bytes at that time, if a listing showed them and they are not read yet
    - `stepped`, `steady`: the last write with a step of the training, and when its steps last resumed after a pause
    - `quiet_since`: the log's last write before a silent check
    - `changed`: when nodes last joined or left; a silence at that time does not raise the limit for other silences
    - `paces`: steps a minute between two writes of the log, so that a step may take longer than a check
    """

    checks: int = 0
    container: str = ""
    log: str = ""
    rank: int = 0
    at: int = 0
    read_to: float = 0.0
    listed_size: int = 0
    stepped: float = 0.0
    steady: float = 0.0
    grew: dict[str, float] = field(default_factory=dict)
    pause: float = 0.0
    quiet_since: float | None = None
    changed: float = 0.0
    paces: tuple[float, ...] = ()
    text: str = ""

    @classmethod
    def of(cls, carried: dict[str, Any]) -> Observed:
        """Return the memory from a message. A memory that this version can't read starts again empty."""
        try:
            return convert(carried, cls)
        except msgspec.ValidationError:
            return cls()

    def carried(self) -> dict[str, Any]:
        """Return the value for the next message."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @property
    def wants_list(self) -> bool:
        """Whether the next request lists the logs of all ranks instead of reading the log further."""
        return not self.log or self.quiet_since is not None or self.checks % LISTED_EACH == 0

    def listed(self, container: str, logs: dict[int, tuple[str, int, datetime]]) -> Observed:
        """Return the memory after a listing of the logs by rank: name, size, and time of the last write."""
        grew = self.grew | {str(rank): at.timestamp() for rank, (_, _, at) in logs.items()}
        if not logs:
            return replace(self, checks=self.checks + 1)
        found = replace(self, checks=self.checks + 1, grew=grew)
        rank = self._followed(logs)
        if rank is not None and logs[rank][0] != self.log:
            name, size, written = logs[rank]
            begin = max(0, size - KEPT_TEXT)
            found = replace(found, container=container, log=name, rank=rank, at=begin)
            found = replace(found, read_to=written.timestamp(), listed_size=size)
        return found._waited(max(grew.values()))

    def _followed(self, logs: dict[int, tuple[str, int, datetime]]) -> int | None:
        """Return the rank whose log to read further: the previous rank, or a rank of another job that wrote later.

        An elastic run has several jobs, one of which writes the steps; the first member may leave.
        """
        if not self.log or self.rank in logs:
            return self.rank if self.log else min(logs)
        newest = max(logs, key=lambda rank: logs[rank][2])
        return newest if logs[newest][2].timestamp() > self.grew.get(str(self.rank), 0.0) else None

    def read(self, new: Growth | None) -> Observed:
        """Return the memory after a request for new bytes of the log; None stands for a log that no longer exists."""
        if new is None:
            return replace(self, checks=self.checks + 1, log="")
        now = new.last_modified.timestamp()
        text = new.data.decode("utf-8", "replace")
        since = new.data[max(0, self.listed_size - self.at) :].decode("utf-8", "replace")
        found = replace(
            self,
            checks=self.checks + 1,
            at=self.at + len(new.data),
            grew=self.grew | {str(self.rank): now},
            text=(self.text + text)[-KEPT_TEXT:],
            paces=self._paces(since, now),
            read_to=now if text else self.read_to,
            listed_size=0 if text else self.listed_size,
        )._stepped(now if _steps(text) else 0.0, self.paces)
        if not new.data:
            return replace(found, quiet_since=self.quiet_since or now)
        return found._waited(now)

    def _paces(self, text: str, now: float) -> tuple[float, ...]:
        pace = 60 * _steps(text) / (now - self.read_to) if self.read_to and now > self.read_to else 0.0
        return (*self.paces, pace)[-KEPT_PACES:] if pace else self.paces

    def _stepped(self, now: float, paces: tuple[float, ...]) -> Observed:
        """Return the memory after a write with a step at the time `now`; 0 for a write without steps. `paces` are
        the earlier paces.
        """
        if not now:
            return self
        longest = max(PAUSE, GAPS * 60 / paces[-1]) if paces else PAUSE
        return replace(self, stepped=now, steady=self.steady if now - self.stepped <= longest else now)

    def _waited(self, grew: float) -> Observed:
        """Return the memory after a write at this time. A silence that ends with a write was healthy."""
        if self.quiet_since is None or grew <= self.quiet_since:
            return self
        met_again = self.changed >= self.quiet_since - EACH_SECONDS
        pause = self.pause if met_again else max(self.pause, grew - self.quiet_since)
        return replace(self, pause=pause, quiet_since=None)

    def pulse(self, began: datetime, now: datetime, nodes: tuple[NodePulse, ...]) -> Pulse:
        """Return the known facts about the run. `began`: when nodes last joined or left."""
        return Pulse(
            now,
            began,
            {int(rank): datetime.fromtimestamp(at, UTC) for rank, at in self.grew.items()},
            timedelta(seconds=self.pause),
            self.paces,
            self.text,
            nodes,
            datetime.fromtimestamp(self.stepped, UTC) if self.stepped else None,
            datetime.fromtimestamp(self.steady, UTC) if self.stepped else None,
        )


def _steps(text: str) -> int:
    """Return the number of training steps that the text reports. Steps of an evaluation do not count."""
    return sum(reports_step(line) and not EVALUATES.match(line) for line in text.splitlines())
