"""The store of elastic runs: the table in which their nodes meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.adapters.elastic.rendezvous_table import TableRendezvous
from shared.elastic.ports import RENDEZVOUS

if TYPE_CHECKING:
    from shared.adapters.storage.account import StorageClients
    from shared.kernel.settings import Workspace


def stores(clients: StorageClients, _: Workspace) -> dict[str, Any]:
    """Return the store of elastic runs, by its name. Sends no request."""
    return {RENDEZVOUS.name: TableRendezvous(clients.table)}
