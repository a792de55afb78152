"""The time, and the passing of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The time now, in UTC."""

    def pause(self, seconds: float) -> None:
        """Return after so many seconds. The clocks of tests move on at once."""


class SystemClock:
    """The machine's clock."""

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)
