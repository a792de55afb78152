"""The queue messages of sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import Message, Trace
from shared.runs.messages import RUN_CHECKS


@dataclass(frozen=True)
class CheckSweep(Message, queue=RUN_CHECKS, handler="shared.sweeps.look:look_at_sweep"):
    """Bring a sweep on. `number` is that of a check by the clock: only the one that the row waits for asks for the
    next. The hourly check of runs begins these checks anew."""

    sweep: str
    number: int | None = None

    @property
    def trace(self) -> Trace:
        return Trace(run=self.sweep)

    @property
    def turn(self) -> str:
        return self.trace.run
