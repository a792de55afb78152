"""The storage account's clients, by connection string (Azurite) or with the app's identity (Azure)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from azure.core.utils import parse_connection_string

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
        )
    credential = _credential()
    return StorageClients(
        BlobServiceClient(storage.blob, credential=credential, **_BLOB),
        QueueServiceClient(storage.queue, credential=credential, **_RETRY),
        Wire(storage.table, TokenSigner(credential)),
    )


def tables(connection_string: str, pool: PoolManager | None = None) -> Wire:
    """The table service of a connection string with the account's key. Raises BadInput for another one."""
    parts = parse_connection_string(connection_string)
    try:
        account, key = parts["accountname"], base64.b64decode(parts["accountkey"])
        url = parts.get("tableendpoint") or "{defaultendpointsprotocol}://{accountname}.table.{endpointsuffix}".format(
            **{"endpointsuffix": "core.windows.net", **parts}
        )
    except (KeyError, ValueError) as exc:
        raise BadInput("The storage connection string needs AccountName, AccountKey and the tables' address.") from exc
    return Wire(url, KeySigner(account, key), pool)


def _credential() -> TokenCredential:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
