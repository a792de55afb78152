"""The storage account's clients, by connection string (Azurite) or with the app's identity (Azure)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from azure.core.utils import parse_connection_string

from shared.adapters.queues import VERSION as QUEUE_VERSION
from shared.adapters.rows import VERSION as TABLE_VERSION
from shared.adapters.wire import KeySigner, TokenSigner, Wire
from shared.kernel.errors import BadInput
from shared.kernel.settings import Storage

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient
    from urllib3 import PoolManager

# A message that fails comes again, so a call gives up after some seconds instead of the SDK's minutes.
_PATIENCE: dict[str, Any] = {"retry_total": 3, "connection_timeout": 5, "read_timeout": 30}  # seconds
_RETRY: dict[str, Any] = {**_PATIENCE, "initial_backoff": 0.5, "increment_base": 1, "random_jitter_range": 0.5}
# Blobs are read in pieces of this size; it bounds the memory of StorageBlobs.read and lines.
_PIECE = 4 * 1024 * 1024
_BLOB: dict[str, Any] = {**_RETRY, "max_single_get_size": _PIECE, "max_chunk_get_size": _PIECE}


@dataclass(frozen=True)
class StorageClients:
    """One client per service. They are safe to share between threads, and make no request when they are made."""

    blob: BlobServiceClient
    queue: QueueServiceClient
    table: Wire
    messages: Wire  # the queue service again, for what is sent by the thousand

    @property
    def account(self) -> str:
        return str(self.blob.account_name)


def clients(storage: Storage) -> StorageClients:
    """Make the clients. Without a connection string, one DefaultAzureCredential serves all three."""
    from azure.storage.blob import BlobServiceClient
    from azure.storage.queue import QueueServiceClient

    if text := storage.connection_string:
        return StorageClients(
            BlobServiceClient.from_connection_string(text, **_BLOB),
            QueueServiceClient.from_connection_string(text, **_RETRY),
            tables(text),
            _messages(text),
        )
    credential = _credential()
    return StorageClients(
        BlobServiceClient(storage.blob, credential=credential, **_BLOB),
        QueueServiceClient(storage.queue, credential=credential, **_RETRY),
        Wire(storage.table, TokenSigner(credential), TABLE_VERSION),
        Wire(storage.queue, TokenSigner(credential), QUEUE_VERSION, twice=True),
    )


def tables(connection_string: str, pool: PoolManager | None = None) -> Wire:
    """The table service of a connection string with the account's key. Raises BadInput for another one."""
    account, key, url = _with_key(connection_string, "table")
    return Wire(url, KeySigner(account, key, tables=True), TABLE_VERSION, pool)


def _messages(connection_string: str) -> Wire:
    account, key, url = _with_key(connection_string, "queue")
    return Wire(url, KeySigner(account, key, tables=False), QUEUE_VERSION, twice=True)


def _with_key(connection_string: str, service: str) -> tuple[str, bytes, str]:
    """The account's name, its key, and the service's address."""
    parts = {"defaultendpointsprotocol": "https", "endpointsuffix": "core.windows.net"}
    try:
        parts |= parse_connection_string(connection_string)
        account, key = parts["accountname"], base64.b64decode(parts["accountkey"])
    except (KeyError, ValueError) as exc:
        raise BadInput("The storage connection string needs AccountName and AccountKey.") from exc
    usual = f"{parts['defaultendpointsprotocol']}://{account}.{service}.{parts['endpointsuffix']}"
    return account, key, parts.get(f"{service}endpoint", usual)


def _credential() -> TokenCredential:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
