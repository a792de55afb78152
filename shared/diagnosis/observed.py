"""What the checks of a running run remember of its log, from one check to the next. Pure.

The memory travels in the message of the next check, so it needs no store, and no process has to live on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shared.diagnosis.steps import reports_step
from shared.kernel.parsing import convert
from shared.kernel.storage import Growth
from shared.runs.pulse import NodePulse, Pulse

KEPT_TEXT = 6_000  # characters of the end of the log
KEPT_PACES = 10
LISTED_EACH = 10  # checks; a listing finds the logs of further ranks


@dataclass(frozen=True)
class Observed:
    """The log that is read and how far, when each rank's log grew (Unix seconds), and what was seen of the pace.

    `silent`: the last check found nothing new. `quiet_since`: the log's last write before a silent check.
    """

    checks: int = 0
    container: str = ""
    log: str = ""
    rank: int = 0
    at: int = 0
    grew: dict[str, float] = field(default_factory=dict)
    pause: float = 0.0
    quiet_since: float | None = None
    paces: tuple[float, ...] = ()
    text: str = ""

    @classmethod
    def of(cls, carried: dict[str, Any]) -> Observed:
        """What a message carries. What this version can't read begins anew."""
        try:
            return convert(carried, cls)
        except msgspec.ValidationError:
            return cls()

    def carried(self) -> dict[str, Any]:
        """The value for the next message."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @property
    def wants_list(self) -> bool:
        """Whether the next request lists the logs of all ranks, instead of reading the log further."""
        return not self.log or self.quiet_since is not None or self.checks % LISTED_EACH == 0

    def listed(self, container: str, logs: dict[int, tuple[str, int, datetime]]) -> Observed:
        """After a listing of the logs by rank: name, size, and time of the last write."""
        grew = self.grew | {str(rank): at.timestamp() for rank, (_, _, at) in logs.items()}
        if not logs:
            return replace(self, checks=self.checks + 1)
        rank = self.rank if self.log and self.rank in logs else min(logs)
        name, size, _ = logs[rank]
        begin = self.at if self.log == name else max(0, size - KEPT_TEXT)
        found = replace(self, checks=self.checks + 1, container=container, log=name, rank=rank, at=begin, grew=grew)
        return found._waited(max(grew.values()))

    def read(self, new: Growth | None) -> Observed:
        """After a request for what is new in the log; None if it is gone."""
        if new is None:
            return replace(self, checks=self.checks + 1, log="")
        before, now = self.grew.get(str(self.rank), 0.0), new.last_modified.timestamp()
        text = new.data.decode("utf-8", "replace")
        found = replace(
            self,
            checks=self.checks + 1,
            at=self.at + len(new.data),
            grew=self.grew | {str(self.rank): now},
            text=(self.text + text)[-KEPT_TEXT:],
            paces=self._paces(text, now - before),
        )
        if not new.data:
            return replace(found, quiet_since=self.quiet_since or now)
        return found._waited(now)

    def _paces(self, text: str, seconds: float) -> tuple[float, ...]:
        steps = sum(reports_step(line) for line in text.splitlines())
        pace = 60 * steps / seconds if seconds > 0 and self.checks > 1 else 0.0
        return (*self.paces, pace)[-KEPT_PACES:] if pace else self.paces

    def _waited(self, grew: float) -> Observed:
        """After a write at this time: a silence before it has ended, and was healthy."""
        if self.quiet_since is None or grew <= self.quiet_since:
            return self
        return replace(self, pause=max(self.pause, grew - self.quiet_since), quiet_since=None)

    def pulse(self, began: datetime, now: datetime, nodes: tuple[NodePulse, ...]) -> Pulse:
        """What is known of the run."""
        return Pulse(
            now,
            began,
            {int(rank): datetime.fromtimestamp(at, UTC) for rank, at in self.grew.items()},
            timedelta(seconds=self.pause),
            self.paces,
            self.text,
            nodes,
        )
