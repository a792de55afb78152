"""The queue messages of the checks of running runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared.kernel.message import CHECKS, Message, Trace


@dataclass(frozen=True)
class WatchRun(Message, queue=CHECKS, handler="shared.diagnosis.watch:watch_run"):
    """Start the minute-by-minute checks of a running run if none are active. `viewed`: somebody views the run."""

    watched: str  # the run
    viewed: bool = False

    @property
    def trace(self) -> Trace:
        return Trace(run=self.watched)

    @property
    def turn(self) -> str:
        return self.trace.run


@dataclass(frozen=True)
class CheckHealth(Message, queue=CHECKS, handler="shared.diagnosis.watch:check_health"):
    """Check whether a running run makes progress, and queue the next check.

    If `chain` differs from the chain in the run's row, the check ends its chain. `observed` is the memory of the
    earlier checks.
    """

    checked: str  # the run
    chain: str
    observed: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        return Trace(run=self.checked)

    @property
    def turn(self) -> str:
        return self.trace.run


@dataclass(frozen=True)
class RestartHung(
    Message, queue=CHECKS, handler="shared.diagnosis.on_hang:restart", done="shared.diagnosis.on_hang:is_restarted"
):
    """Start a run again that was canceled because it hung. `tries` counts the waits for its archive."""

    hung: str  # the run
    tries: int = 0

    @property
    def trace(self) -> Trace:
        return Trace(run=self.hung)
