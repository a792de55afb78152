"""The current time, and pauses."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """Return the current time in UTC."""

    def pause(self, seconds: float) -> None:
        """Return after this many seconds. Test clocks advance immediately instead."""


class SystemClock:
    """The machine's clock."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)
