"""Long-running operations: their answers before and after the end, and how long they are kept."""

from __future__ import annotations

import asyncio

import pytest

from emulators.azureml.kernel.errors import Conflict, NotFound
from emulators.azureml.service.operations import KEPT_SECONDS, MOST_KEPT, Operations


async def _refuse(error: Exception) -> None:
    raise error


async def _ended(operations: Operations, name: str) -> None:
    while operations.under_way(name):
        await asyncio.sleep(0)


def test_an_operation_that_failed_says_so() -> None:
    """A failed operation is Failed, with the reason or a reference to the log. A running operation is InProgress."""

    async def asked() -> None:
        operations = Operations()
        waiting = operations.begin(asyncio.sleep(60))
        assert operations.answer(waiting) == {"status": "InProgress"}
        for error, code in ((Conflict("It is in use.", "InUse"), "InUse"), (ValueError(), "InternalServerError")):
            failed = operations.begin(_refuse(error))
            await _ended(operations, failed)
            answer = operations.answer(failed)
            assert (answer["status"], answer["error"]["code"]) == ("Failed", code)
        with pytest.raises(NotFound):
            operations.answer("another")

    asyncio.run(asked())


def test_operations_are_forgotten() -> None:
    """A finished operation is forgotten after a day or after a thousand other operations, and a running one never."""

    async def asked() -> None:
        now = 0.0
        operations = Operations(lambda: now)
        waiting, first = operations.begin(asyncio.sleep(60)), operations.begin(asyncio.sleep(0))
        await _ended(operations, first)
        for _ in range(MOST_KEPT + 1):
            last = operations.begin(asyncio.sleep(0))
            await _ended(operations, last)
        with pytest.raises(NotFound):
            operations.answer(first)
        assert operations.answer(last) == {"status": "Succeeded"}
        now = KEPT_SECONDS + 1
        newest = operations.begin(asyncio.sleep(0))
        with pytest.raises(NotFound):
            operations.answer(last)
        assert operations.answer(waiting) == operations.answer(newest) == {"status": "InProgress"}

    asyncio.run(asked())
