"""The storage account's clients, by connection string (local) or with the app's identity (Azure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.kernel.settings import Storage

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient

# A failed message is retried, so a call gives up after some seconds instead of the SDK's minutes.
_TIMEOUTS = {"connection_timeout": 5, "read_timeout": 30}  # seconds
_PATIENCE: dict[str, Any] = {"retry_total": 3, **_TIMEOUTS}
_RETRY: dict[str, Any] = {**_PATIENCE, "initial_backoff": 0.5, "increment_base": 1, "random_jitter_range": 0.5}
_TABLE_RETRY: dict[str, Any] = {**_PATIENCE, "retry_backoff_factor": 0.5}
# Blobs are read in pieces of this size, which bounds the memory of StorageBlobs.read and lines.
_PIECE = 4 * 1024 * 1024
_BLOB: dict[str, Any] = {**_RETRY, "max_single_get_size": _PIECE, "max_chunk_get_size": _PIECE}


@dataclass(frozen=True)
class StorageClients:
    """One client per service. Clients are safe to share between threads, and creating a client sends no request."""

    blob: BlobServiceClient
    queue: QueueServiceClient
    table: TableServiceClient

    @property
    def account(self) -> str:
        return str(self.blob.account_name)


def clients(storage: Storage) -> StorageClients:
    """Create the clients. Without a connection string, the three clients share one DefaultAzureCredential."""
    from azure.data.tables import TableServiceClient
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient

    from shared.adapters.transport import transport

    blob, queue, table = (options | {"transport": transport(**_TIMEOUTS)} for options in (_BLOB, _RETRY, _TABLE_RETRY))
    if text := storage.connection_string:
        return StorageClients(
            BlobServiceClient.from_connection_string(text, **blob),
            QueueServiceClient.from_connection_string(text, **queue),
            TableServiceClient.from_connection_string(text, **table),
        )
    credential = _credential()
    return StorageClients(
        BlobServiceClient(storage.blob, credential=credential, **blob),
        QueueServiceClient(storage.queue, credential=credential, **queue),
        TableServiceClient(storage.table, credential=credential, **table),
    )


def _credential() -> TokenCredential:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
