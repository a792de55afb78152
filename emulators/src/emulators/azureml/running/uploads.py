"""Copies of a running attempt's logs and outputs to storage."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from emulators.azureml.kernel.errors import DataError, Refused
from emulators.azureml.running.folders import Watched
from emulators.azureml.running.logs import MANY_BLOCKS, LogCopy
from emulators.azureml.storage.blobs import Blobs

log = logging.getLogger(__name__)

LOG_SECONDS = 0.3
OUTPUT_SECONDS = 1.0
SELDOM_SECONDS = 30.0  # once a log is near its blob's maximum number of blocks
FINAL_TRIES = 5
MOST_TOLD = 20  # files that the log lists as left out
NO_TEXT = "the name of a blob must be UTF-8, and this file's is not."


class Copies:
    """Copies logs and folders to storage. A failed copy is retried in the next round. The last rounds must succeed."""

    def __init__(self, blobs: Blobs, logs: Sequence[LogCopy], folders: Sequence[Watched]) -> None:
        self._blobs = blobs
        self._logs = logs
        self._folders = folders
        self._logged: set[tuple[Path, str]] = set()  # files that the log lists as left out

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Copy in the background during the block."""
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
        """Copy the remaining output after all processes have ended. Raises DataError if storage keeps failing."""
        for attempt in range(1, FINAL_TRIES + 1):
            try:
                await self._push_logs()
                await self._push_folders()
                await self._push_logs()  # messages about the folders
                return
            except (DataError, OSError) as error:  # another job may remove files from a mount meanwhile
                if attempt == FINAL_TRIES or isinstance(error, Refused):
                    raise
                log.warning("final copy failed, trying again: %s", error)
                await asyncio.sleep(attempt)

    async def _push_logs(self) -> None:
        for copy in self._logs:
            await copy.push(self._blobs)

    async def _push_folders(self) -> None:
        for folder in self._folders:
            try:
                await folder.push(self._blobs)
            finally:
                self._log_unnamed({(folder.folder, name) for name in folder.unnamed})

    def _log_unnamed(self, unnamed: set[tuple[Path, str]]) -> None:
        """Log each file that is left out once, in the first log."""
        new = sorted(unnamed - self._logged)[: MOST_TOLD - len(self._logged)]
        if new:
            with self._logs[0].file.open("a", encoding="utf-8") as file:
                file.writelines(f"[azureml] {os.fsencode(name)!r} is not kept: {NO_TEXT}\n" for _, name in new)
            self._logged |= set(new)

    def _log_pause(self) -> float:
        return SELDOM_SECONDS if any(copy.blocks > MANY_BLOCKS for copy in self._logs) else LOG_SECONDS


async def _repeat(push: Callable[[], Awaitable[None]], pause: Callable[[], float]) -> None:
    while True:
        await asyncio.sleep(pause())
        try:
            await push()
        except (DataError, OSError) as error:
            log.warning("copy failed, will try again: %s", error)
