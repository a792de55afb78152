"""What is registered with Azure ML, in Azure Table Storage: a row for each content, by kind and digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.adapters.tables import table
from shared.adapters.tables.table import Table

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient


class TableAssets:
    """Which content is registered with Azure ML under which id."""

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "assets")

    def get(self, kind: str, digest: str) -> str | None:
        """The id of what was registered, or None. A row may outlive its asset if someone deletes that."""
        row = self._table.get(kind, digest)
        return str(row["id"]) if row else None

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        """Remember the id. Twice is the same as once."""
        self._table.write(table.put({"PartitionKey": kind, "RowKey": digest, "id": asset_id}))
