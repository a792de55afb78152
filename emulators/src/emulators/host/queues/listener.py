"""The queue trigger: receives messages, runs their functions, deletes and retries messages, and moves poison
messages away."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.queue import QueueMessage

from emulators.host.config import QueueOptions
from emulators.host.functions import Function, QueueTrigger
from emulators.host.queues import messages
from emulators.host.queues.client import Connections
from emulators.host.queues.outputs import QueueWriter
from emulators.host.stop import Stop
from emulators.host.storage import queue_client
from emulators.host.worker.backend import Outcome, Value
from emulators.host.worker.invoker import Invoker

log = logging.getLogger("host.queues")
FIRST_POLL_SECONDS = 0.1
LONGEST_QUEUE_NAME = 63


class Backoff:
    """The waits for an empty queue. Each wait is twice the previous one, varied by up to a fifth."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        self._seconds = FIRST_POLL_SECONDS

    def next(self) -> float:
        seconds = min(self._seconds, self._longest)
        self._seconds = seconds * 2
        return seconds * random.uniform(0.8, 1.2)  # noqa: S311 - keeps instances apart, protects nothing


def poison_name(queue: str) -> str | None:
    """Return the name of the poison queue of `queue`, or None if no valid name exists. Failing messages then stay
    in the queue, hidden."""
    name = f"{queue}-poison"
    return None if queue.endswith("-poison") or len(name) > LONGEST_QUEUE_NAME else name


@dataclass(frozen=True)
class QueueServices:
    """Objects that a host's queue listeners share. `invisibility` is in seconds, and is renewed at half time."""

    options: QueueOptions
    invoker: Invoker
    writer: QueueWriter
    stop: Stop
    invisibility: int
    connections: Connections


class QueueListener:
    """Invokes one function for the messages of one queue until the host stops.

    A missing queue counts as empty. Storage errors are logged and retried. A message whose deletion failed becomes
    visible again, so functions must tolerate a second run.
    """

    def __init__(self, function: Function, trigger: QueueTrigger, services: QueueServices) -> None:
        self._function = function
        self._trigger = trigger
        self._options = services.options
        self._invoker = services.invoker
        self._writer = services.writer
        self._stop = services.stop
        self._invisibility = services.invisibility
        self._client = queue_client(trigger.connection, trigger.queue, services.connections)
        self._in_flight: dict[asyncio.Task[None], QueueMessage] = {}

    async def run(self) -> None:
        """Receive until the host stops. A batch is requested whenever enough messages of the previous batches are
        done."""
        backoff = Backoff(self._options.max_polling_interval)
        while not self._stop.is_set():
            received = await self._receive()
            for message in received:
                self._in_flight[asyncio.create_task(self._guarded(message))] = message
            if not received:
                await self._stop.within(backoff.next())
                continue
            backoff.reset()
            if len(received) < self._options.batch_size:  # the queue has no more
                await self._stop.within(backoff.next())
            while len(self._in_flight) > self._options.new_batch_threshold and not self._stop.is_set():
                await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)

    async def close(self, seconds: float) -> None:
        """Wait at most `seconds` for running messages. The rest become visible again at once."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=seconds)
        left = list(self._in_flight.items())
        for task, message in left:
            task.cancel()
            await self._tried(self._show(message, 0), "release")
        await asyncio.gather(*(task for task, _ in left), return_exceptions=True)
        await self._client.close()

    async def _receive(self) -> list[QueueMessage]:
        size = self._options.batch_size
        pages = self._client.receive_messages(
            messages_per_page=size, max_messages=size, visibility_timeout=self._invisibility
        )
        try:
            return [message async for message in pages]
        except ResourceNotFoundError:
            return []
        except AzureError as exc:
            log.warning("queue %s: cannot receive: %s", self._trigger.queue, exc)
            return []

    async def _guarded(self, message: QueueMessage) -> None:
        try:
            await self._tried(self._process(message), "finish")
        except Exception:
            log.exception("queue %s: message %s", self._trigger.queue, message.id)
        finally:
            task = asyncio.current_task()
            assert task is not None
            del self._in_flight[task]

    async def _tried(self, step: Coroutine[Any, Any, None], what: str) -> None:
        try:
            await step
        except AzureError as exc:
            log.warning("queue %s: cannot %s a message: %s", self._trigger.queue, what, exc)

    async def _process(self, message: QueueMessage) -> None:
        try:
            body = messages.decode(message.content, base64=self._options.base64)
        except ValueError as exc:
            log.error("queue %s: message %s: %s", self._trigger.queue, message.id, exc)
            await self._to_poison(message, message.content)
            return
        tries = int(message.dequeue_count or 0)
        if tries > self._options.max_dequeue_count:  # the host ended during the last try
            await self._to_poison(message, message.content)
            return
        outcome = await self._run(message, messages.body_value(body))
        if outcome.ok:
            await self._client.delete_message(message.id, message.pop_receipt)
        elif tries >= self._options.max_dequeue_count:
            await self._to_poison(message, message.content)
        else:
            await self._show(message, self._options.visibility_timeout)

    async def _run(self, message: QueueMessage, body: Value) -> Outcome:
        """Run the function while its message stays hidden."""
        done, renewals = asyncio.Event(), list[asyncio.Task[None]]()

        def renew() -> None:
            renewals.append(asyncio.create_task(self._renew(message, done)))

        later = asyncio.get_running_loop().call_later(self._invisibility / 2, renew)  # most functions end earlier
        try:
            inputs = {self._trigger.parameter: body}
            return await self._invoker.invoke(self._function, inputs, messages.metadata(message, body))
        finally:
            later.cancel()
            done.set()
            for renewal in renewals:
                await renewal  # never cancelled, because a renewal changes the receipt for the deletion

    async def _renew(self, message: QueueMessage, done: asyncio.Event) -> None:
        while not done.is_set():
            await self._tried(self._show(message, self._invisibility), "renew")
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), self._invisibility / 2)

    async def _show(self, message: QueueMessage, seconds: int) -> None:
        """Make the message visible after `seconds`, with unchanged content."""
        updated = await self._client.update_message(message.id, message.pop_receipt, visibility_timeout=seconds)
        message.pop_receipt = updated.pop_receipt

    async def _to_poison(self, message: QueueMessage, content: str) -> None:
        """Move the message to the poison queue, in the original encoding."""
        poison = poison_name(self._trigger.queue)
        if poison is None:
            return
        log.warning("queue %s: message %s moves to %s", self._trigger.queue, message.id, poison)
        await self._writer.send_text(self._trigger.connection, poison, content)
        await self._client.delete_message(message.id, message.pop_receipt)
