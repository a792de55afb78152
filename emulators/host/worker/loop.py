"""Where the app runs: a thread with an event loop of its own.

In Azure, worker and host are two processes. Here an async function that blocks stalls this loop and no other: HTTP,
leases and the renewal of messages go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs coroutines on the app's event loop. Made on the host's loop, which awaits their results."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="app", daemon=True)
        self._thread.start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end. Cancelling this cancels `work` at its next await; it does not wait for that."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_contained(work), self._loop))

    def close(self) -> None:
        """Stop the loop. Work that still runs is abandoned."""
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _contained(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    try:
        return await work
    except SystemExit as exc:  # sys.exit() in a function would end the event loop, and with it every other function
        raise RuntimeError(f"the function called sys.exit({exc.code!r})") from exc
    except asyncio.CancelledError as exc:
        if task and task.cancelling():  # by us: its time is over
            raise
        raise RuntimeError("the function cancelled itself") from exc
