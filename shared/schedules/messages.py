"""The messages of schedules."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import CHECKS, Message


@dataclass(frozen=True)
class CheckSchedule(Message, queue=CHECKS, handler="shared.schedules.fire:check_schedule"):
    """Decide the firings that are due. `meant` is the instant of the check in ISO 8601; '' for none.

    The reconcile timer sends another check for an overdue schedule.
    """

    schedule: str
    meant: str = ""
