"""Long-running operations: an operation is accepted with an address for its state, and is done when its work is
done.

https://github.com/Azure/azure-resource-manager-rpc/blob/master/v1.0/async-api-reference.md
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from emulators.azureml.bodies import responses
from emulators.azureml.kernel.errors import ArmError, NotFound
from emulators.azureml.kernel.models import Json

log = logging.getLogger(__name__)

POLL_HEADER = {"retry-after-ms": "100"}  # otherwise azure-core waits 30 s between polls
KEPT_SECONDS = 24 * 3600.0  # an ended operation is kept this long
MOST_KEPT = 1000  # ended operations; the oldest are forgotten first


@dataclass
class _Operation:
    work: asyncio.Task[None]
    ended: float | None = None
    error: ArmError | None = None


class Operations:
    """The operations of this process. After a restart their addresses are unknown, because their work is either
    done or lost."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: dict[str, _Operation] = {}  # in the order of their begin

    def begin(self, work: Coroutine[Any, Any, Any]) -> str:
        """Start the work and return the operation's id. Operations that ended long ago, or before many others, are
        forgotten."""
        self._forget()
        name = str(uuid.uuid4())
        self._all[name] = _Operation(asyncio.create_task(self._attend(name, work)))
        return name

    def answer(self, name: str) -> Json:
        """Return the state of an operation: `status`, and `error` if it failed. Raises NotFound."""
        if name not in self._all:
            raise NotFound(f"There is no operation {name}.", "NotFound")
        operation = self._all[name]
        if operation.ended is None:
            return {"status": "InProgress"}
        error = operation.error
        return {"status": "Failed", **responses.error(error.code, error.message)} if error else {"status": "Succeeded"}

    def under_way(self, name: str | None) -> bool:
        return name in self._all and self._all[name].ended is None

    async def _attend(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        operation = self._all[name]
        try:
            await work
        except ArmError as error:
            operation.error = error
        except Exception:  # outermost: a poll returns the error, and the log has the traceback
            log.exception("operation %s broke", name)
            operation.error = ArmError(500, "InternalServerError", "See the control plane's log.")
        operation.ended = self._clock()

    def _forget(self) -> None:
        oldest = self._clock() - KEPT_SECONDS
        ended = {name: one.ended for name, one in self._all.items() if one.ended is not None}
        for number, (name, when) in enumerate(ended.items()):
            if when < oldest or number < len(ended) - MOST_KEPT:
                del self._all[name]
