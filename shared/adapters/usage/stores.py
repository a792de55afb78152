"""The store of usage: Azure Monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.adapters.usage.azure_monitor import AzureMonitor
from shared.usage.ports import NODE_METRICS

if TYPE_CHECKING:
    from shared.adapters.storage.account import StorageClients
    from shared.kernel.settings import Workspace


def stores(_: StorageClients, workspace: Workspace) -> dict[str, Any]:
    """Return the store of usage, by its name. Sends no request."""
    return {NODE_METRICS.name: AzureMonitor(workspace)}
