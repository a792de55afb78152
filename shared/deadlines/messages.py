"""The queue messages of runs with a deadline."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import CHECKS, Message, Trace


@dataclass(frozen=True)
class CheckPace(Message, queue=CHECKS, handler="shared.deadlines.pace:check_pace"):
    """Check the pace of a run with a deadline.

    With a token, this is the next check of the run's chain, and queues its successor.

    Without a token, the check is an additional one. The hourly reconcile of runs restarts the chain.
    """

    paced: str  # the run; the version before knows the message by this key
    token: str | None = None

    @property
    def trace(self) -> Trace:
        return Trace(run=self.paced)

    @property
    def turn(self) -> str:
        return self.trace.run
