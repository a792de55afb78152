"""Facts about schedules."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact
from shared.schedules.model import Firing, Schedule


@dataclass(frozen=True)
class ScheduleFailed(Fact):
    """A firing's run could not be made."""

    schedule: Schedule
    firing: Firing
