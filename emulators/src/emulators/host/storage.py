"""Storage clients of the host itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azure.storage.blob.aio import ContainerClient
from azure.storage.queue.aio import QueueClient

from emulators.host.queues.client import Connections, LightQueueClient, key_parts

# The clients' own retries wait 15 s and longer, for a remote service. An emulator is back within a second, and the
# callers have their own loops.
RETRY: dict[str, Any] = {"retry_total": 3, "initial_backoff": 0, "increment_base": 1, "random_jitter_range": 0}


def queue_client(connection: str, queue: str, connections: Connections) -> QueueClient | LightQueueClient:
    """Return the light client for a complete connection string, otherwise the SDK's client."""
    if parts := key_parts(connection):
        return LightQueueClient(parts, queue, connections)
    return QueueClient.from_connection_string(connection, queue, **RETRY)


def container_client(
    connection: str, container: str, requested: Callable[[str], None] = lambda _: None
) -> ContainerClient:
    """Return a client of the container. `requested` is called for each request."""

    def answered(response: Any) -> None:
        requested(f"{response.http_request.method} {container}")

    return ContainerClient.from_connection_string(connection, container, raw_response_hook=answered, **RETRY)
