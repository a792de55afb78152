"""An answer within five seconds, whatever hangs.

A part may hang without being dead: its connections stay, and the SDKs wait for half a minute, several times. So where
a handler takes long, storage and workspace are asked whether they answer at all, in threads of their own. If one does
not, the caller is told so. What the handler had begun goes on; what had not begun is dropped. The deadline does not
move on a busy machine: who is told 503 tries again.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from shared import bootstrap
from shared.kernel.errors import NoAnswer, TrainyardError

T = TypeVar("T")
ASKED_AFTER = 1.0  # seconds that a handler takes before anybody is asked
PATIENCE = 3.5  # more, in which an answer must come: of the handler, or of everybody who was asked

ASIDE, _ASKING = ThreadPoolExecutor(4, "aside"), ThreadPoolExecutor(2, "asking")


async def in_time(work: asyncio.Future[T]) -> T:
    """The handler's answer. Raises NoAnswer if it takes long, and a part that it may wait for does not answer."""
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
    except TrainyardError:  # the handler says what is wrong with the settings
        return {}


def _silent(asked: dict[str, Future[None]]) -> list[str]:
    return [name for name, answer in asked.items() if not answer.done()]
