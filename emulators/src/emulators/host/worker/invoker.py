"""Runs invocations: each has an id, a log line, a time limit and outputs, and is retried if the function declares
retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Mapping

from azure.core.exceptions import AzureError

from emulators.host import logs
from emulators.host.exporting import Exporter
from emulators.host.functions import Function
from emulators.host.queues.outputs import QueueWriter
from emulators.host.stop import Stop
from emulators.host.worker.backend import Invocation, Outcome, RetryPolicy, Value
from emulators.host.worker.process import WorkerProcess

log = logging.getLogger("host.invocations")


class Invoker:
    """The only way to call a function, for all triggers."""

    def __init__(
        self, worker: WorkerProcess, writer: QueueWriter, stop: Stop, timeout: float | None, exporter: Exporter
    ) -> None:
        self._worker = worker
        self._exporter = exporter
        self._writer = writer
        self._stop = stop
        self._timeout = timeout
        self._running: set[asyncio.Task[Outcome]] = set()

    async def invoke(
        self, function: Function, inputs: Mapping[str, Value], metadata: Mapping[str, Value] | None = None
    ) -> Outcome:
        """Call the function, retry failures as its retry policy says, and return the outcome of the last call.

        The caller may be cancelled. The invocation continues, and `drain` waits for it.
        """
        task = asyncio.create_task(self._with_retries(function, inputs, metadata or {}))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def drain(self, seconds: float) -> int:
        """Wait at most `seconds` for running invocations. Returns the number that are still running."""
        if not self._running:
            return 0
        _, pending = await asyncio.wait(self._running, timeout=seconds)
        return len(pending)

    async def _with_retries(
        self, function: Function, inputs: Mapping[str, Value], metadata: Mapping[str, Value]
    ) -> Outcome:
        limit = function.retry.max_count if function.retry else 0
        attempt = 0
        while True:
            call = Invocation(str(uuid.uuid4()), function.name, inputs, metadata, attempt, limit)
            outcome = await self._once(function, call)
            if outcome.ok or function.retry is None or attempt == limit:
                return outcome
            attempt += 1
            if await self._stop.within(retry_delay(function.retry, attempt)):
                return outcome

    async def _once(self, function: Function, call: Invocation) -> Outcome:
        begin = time.perf_counter()
        outcome = await self._call(call)
        if outcome.ok and function.outputs:
            outcome = await self._written(function, outcome)
        took = (time.perf_counter() - begin) * 1000
        self._exporter.invocation(call.function, call.id, took, outcome.error)
        token = logs.invocation_id.set(call.id)
        if outcome.ok:
            log.info("%s ok %.0f ms", call.function, took)
        else:
            log.error("%s failed %.0f ms %s %s", call.function, took, outcome.error, outcome.trace)
        logs.invocation_id.reset(token)
        return outcome

    async def _call(self, call: Invocation) -> Outcome:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._worker.invoke(call)
        except TimeoutError:
            await self._worker.replace(call.id)
            return Outcome(error=f"TimeoutError: functionTimeout of {self._timeout:g} s is over")

    async def _written(self, function: Function, outcome: Outcome) -> Outcome:
        try:
            await self._writer.write(function.outputs, outcome)
        except (AzureError, ValueError) as exc:
            return Outcome(error=f"output binding: {type(exc).__name__}: {exc}")
        return outcome


def retry_delay(policy: RetryPolicy, attempt: int) -> float:
    """Return the seconds before retry number `attempt` (1 is the first), by the rule of the Functions host."""
    if policy.strategy == "fixed_delay":
        return policy.delay
    if attempt == 1:
        return min(policy.minimum, policy.maximum)
    jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries, protects nothing
    # Doubling stops mattering long before the exponent gets large, and floats end at 2 ** 1023.
    return float(min(policy.maximum, policy.minimum + jitter * 2.0 ** min(attempt - 2, 64) * policy.minimum))
