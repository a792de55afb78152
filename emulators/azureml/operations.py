"""Long-running operations: accepted with an address to ask, done when their work is."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any

from emulators.azureml.errors import NotFound

POLL_HEADER = {"retry-after-ms": "100"}  # else azure-core waits 30 s between questions


class Operations:
    """Operations of this process; after a restart their addresses are unknown, as the work is done or undone."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def begin(self, work: Coroutine[Any, Any, Any]) -> str:
        """Start the work and return the operation's id."""
        operation = str(uuid.uuid4())
        self._tasks[operation] = asyncio.create_task(work)
        return operation

    def done(self, operation: str) -> bool:
        if operation not in self._tasks:
            raise NotFound(f"There is no operation {operation}.", "NotFound")
        return self._tasks[operation].done()
