"""The messages of schedules."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import Message


@dataclass(frozen=True)
class CheckSchedule(Message, queue="schedule-looks", handler="shared.schedules.fire:look"):
    """Decide the firings that are due. `meant` is the instant, in ISO 8601, that the check was asked for; '' for none.
    The reconcile timer sends another for a schedule that is overdue."""

    schedule: str
    meant: str = ""
