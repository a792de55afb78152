"""The current time, and pauses."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """Return the current time in UTC."""

    def pause(self, longest: float) -> None:
        """Return after a random time of at most `longest` seconds. Test clocks advance by `longest` at once."""


class SystemClock:
    """The clock of this machine."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    def pause(self, longest: float) -> None:
        time.sleep(random.uniform(0.0, longest))  # noqa: S311  # not for security: it only spreads the waiting writers
