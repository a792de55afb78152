"""The queue messages of sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import CHECKS, Message, Trace


@dataclass(frozen=True)
class CheckSweep(Message, queue=CHECKS, handler="shared.sweeps.advance:advance_sweep"):
    """Advance a sweep. `number` identifies a check by the clock: only the number that the row expects queues the next.

    The hourly reconcile of runs restarts these checks.
    """

    sweep: str
    number: int | None = None

    @property
    def trace(self) -> Trace:
        return Trace(run=self.sweep)

    @property
    def turn(self) -> str:
        return self.trace.run
