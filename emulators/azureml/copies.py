"""Keeps storage in step with a running attempt: its logs and its outputs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from emulators.azureml.blobs import Blobs
from emulators.azureml.data import Watched
from emulators.azureml.errors import DataError
from emulators.azureml.logs import MANY_BLOCKS, LogCopy

log = logging.getLogger(__name__)

LOG_SECONDS = 0.3
OUTPUT_SECONDS = 1.0
SELDOM_SECONDS = 30.0  # once a log nears the number of blocks that its blob can take
FINAL_TRIES = 5


class Copies:
    """What is copied, and how. A failed copy is tried again with the next round; the last rounds must succeed."""

    def __init__(self, blobs: Blobs, logs: Sequence[LogCopy], folders: Sequence[Watched]) -> None:
        self._blobs = blobs
        self._logs = logs
        self._folders = folders

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Copy in the background for the length of the block."""
        tasks = [
            asyncio.create_task(_repeat(self._push_logs, self._log_pause)),
            asyncio.create_task(_repeat(self._push_folders, lambda: OUTPUT_SECONDS)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Copy all that is left, now that nothing writes any more. Raises DataError if storage refuses for long."""
        for attempt in range(1, FINAL_TRIES + 1):
            try:
                await self._push_logs()
                await self._push_folders()
                return
            except DataError as error:
                if attempt == FINAL_TRIES:
                    raise
                log.warning("final copy failed, trying again: %s", error)
                await asyncio.sleep(attempt)

    async def _push_logs(self) -> None:
        for copy in self._logs:
            await copy.push(self._blobs)

    async def _push_folders(self) -> None:
        for folder in self._folders:
            await folder.push(self._blobs)

    def _log_pause(self) -> float:
        return SELDOM_SECONDS if any(copy.blocks > MANY_BLOCKS for copy in self._logs) else LOG_SECONDS


async def _repeat(push: Callable[[], Awaitable[None]], pause: Callable[[], float]) -> None:
    while True:
        await asyncio.sleep(pause())
        try:
            await push()
        except (DataError, OSError) as error:
            log.warning("copy failed, will try again: %s", error)
