"""The queue messages of the checks of running runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared.kernel.message import CHECKS, Message, Trace


@dataclass(frozen=True)
class WatchRun(Message, queue=CHECKS, handler="shared.diagnosis.watch:watch_run"):
    """See that a running run is checked every minute. `viewed`: because somebody looks at the run."""

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
    """Check whether a running run gets on, and queue the next check.

    A check whose `chain` is no longer that of the run's row ends its chain. `observed` is what the checks before saw.
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
    """Start again a run that was canceled because it hung; `tries` counts the waits for its archive."""

    hung: str  # the run
    tries: int = 0

    @property
    def trace(self) -> Trace:
        return Trace(run=self.hung)
