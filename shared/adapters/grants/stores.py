"""The store of grants, in Azure Table Storage.

partition    key       row
grant        <id>      a grant with its reservations
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, to_row
from shared.adapters.tables.table import Table
from shared.grants.model import Grant
from shared.grants.ports import GRANTS
from shared.kernel.versioned import Stored

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

    from shared.adapters.storage.account import StorageClients
    from shared.kernel.settings import Workspace


class TableGrants:
    """See shared.grants.ports.Grants."""

    _PARTITION = "grant"

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "grants")

    def add(self, grant: Grant) -> None:
        self._table.write(table.create(self._row(grant)))

    def get(self, grant: str) -> Stored[Grant] | None:
        row = self._table.get(self._PARTITION, keys.token(grant))
        return Stored(from_row(Grant, row), table.etag(row)) if row else None

    def all(self) -> list[Grant]:
        grants = readable(Grant, self._table.query(self._PARTITION, "", "\x7f"))
        return sorted(grants, key=lambda grant: (grant.made_at, grant.id), reverse=True)

    def replace(self, before: Stored[Grant], grant: Grant) -> Stored[Grant]:
        (etag,) = self._table.write(table.replace(self._row(grant), before.etag))
        return Stored(grant, etag)

    def _row(self, grant: Grant) -> dict[str, Any]:
        return {"PartitionKey": self._PARTITION, "RowKey": keys.token(grant.id), **to_row(grant)}


def stores(clients: StorageClients, _: Workspace) -> dict[str, Any]:
    """Return the store of grants, by its name."""
    return {GRANTS.name: TableGrants(clients.table)}
