"""Queue output bindings: a function's output values become messages after the function succeeds."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue.aio import QueueClient

from emulators.host.functions import QueueOutput
from emulators.host.queues.client import Connections, LightQueueClient
from emulators.host.storage import queue_client
from emulators.host.worker.backend import Outcome, Value


class QueueWriter:
    """Sends messages in the app's encoding. Creates a missing queue; keeps one client per queue."""

    def __init__(self, connections: Connections, *, base64: bool) -> None:
        self._connections = connections
        self._base64 = base64
        self._clients: dict[tuple[str, str], QueueClient | LightQueueClient] = {}

    async def write(self, outputs: Sequence[QueueOutput], outcome: Outcome) -> None:
        """Send the values of `outcome` for `outputs`, in order. After an error, messages that were already sent
        stay in their queues."""
        for output in outputs:
            value = outcome.returned if output.parameter == "$return" else outcome.outputs.get(output.parameter)
            if value is not None:
                for body in _messages(value):
                    await self.send(output.connection, output.queue, body)

    async def send(self, connection: str, queue: str, body: bytes) -> None:
        """Send one message. Raises AzureError, and ValueError for bytes that are not text if the encoding is not
        base64."""
        await self.send_text(connection, queue, b64encode(body).decode() if self._base64 else body.decode("utf-8"))

    async def send_text(self, connection: str, queue: str, text: str) -> None:
        """Send a message whose text is already encoded. Raises AzureError."""
        client = self._client(connection, queue)
        try:
            await client.send_message(text)
        except ResourceNotFoundError:
            await _create(client)
            await client.send_message(text)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _client(self, connection: str, queue: str) -> QueueClient | LightQueueClient:
        key = (connection, queue)
        if key not in self._clients:
            self._clients[key] = queue_client(connection, queue, self._connections)
        return self._clients[key]


async def _create(client: QueueClient | LightQueueClient) -> None:
    try:
        await client.create_queue()
    except ResourceExistsError:
        return  # another process has just created it


def _messages(value: Value) -> Iterator[bytes]:
    """Yield one message for a scalar, or one for each item of a JSON list. Items that are not text are sent as
    JSON."""
    if value.kind != "json":
        yield value.content if isinstance(value.content, bytes) else str(value.content).encode()
        return
    content = json.loads(value.content)
    for item in content if isinstance(content, list) else [content]:
        yield (item if isinstance(item, str) else json.dumps(item)).encode()
