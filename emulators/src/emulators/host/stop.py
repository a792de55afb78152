"""The host's one signal to stop: listeners take on nothing new, retries end, sleepers wake."""

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
        """Sleep until the host is to stop, at most for the given time. Returns whether the host is to stop."""
        try:
            await asyncio.wait_for(self._event.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        return True
