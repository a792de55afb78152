"""The host's single stop signal: listeners accept nothing new, retries end, and sleepers wake."""

from __future__ import annotations

import asyncio


class Stop:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def within(self, seconds: float) -> bool:
        """Sleep until the host stops, at most for the given time. Returns whether the host stops."""
        try:
            await asyncio.wait_for(self._event.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        return True
