"""Answer within five seconds, even if a service hangs.

A service may hang without closing its connections, and the SDKs wait half a minute, several times. So when a handler
takes long, storage and workspace are asked in separate threads whether they answer at all. If one of them does not, the
caller gets an error that names it. Work that the handler has begun continues; work that has not begun is dropped. The
deadline does not move on a busy machine: a caller that gets 503 retries.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from shared import bootstrap
from shared.kernel.errors import NoAnswer, TrainyardError

T = TypeVar("T")
ASKED_AFTER = 1.0  # seconds that a handler may take before the services are checked
PATIENCE = 3.5  # further seconds in which the handler or every checked service must answer

ASIDE, _ASKING = ThreadPoolExecutor(4, "aside"), ThreadPoolExecutor(2, "asking")


async def in_time(work: asyncio.Future[T]) -> T:
    """Return the handler's answer. Raises NoAnswer if the handler takes long and a service it may wait for does not
    answer.
    """
    await asyncio.wait({work}, timeout=ASKED_AFTER)
    while not work.done():
        asked = asyncio.get_running_loop().run_in_executor(_ASKING, _asked)
        await asyncio.wait({work}, timeout=PATIENCE)
        silent = _silent(asked.result() if asked.done() else {})
        if silent and not work.done():
            work.cancel()
            raise NoAnswer(f"The {' and the '.join(silent)} did not answer for some seconds. Try again in a moment.")
    return await work


def _asked() -> dict[str, Future[None]]:
    from shared.api import status

    try:
        return status.asked(bootstrap.system())
    except TrainyardError:  # the handler reports the problem with the settings
        return {}


def _silent(asked: dict[str, Future[None]]) -> list[str]:
    return [name for name, answer in asked.items() if not answer.done()]
