"""The assets registered with Azure ML, in Azure Table Storage: one row per content, by kind and digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.adapters.tables import table
from shared.adapters.tables.table import Table

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient


class TableAssets:
    """Maps registered contents to their ids in Azure ML."""

    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "assets")

    def get(self, kind: str, digest: str) -> str | None:
        """Return the asset's id, or None. A row may outlive its asset if someone deletes the asset."""
        row = self._table.get(kind, digest)
        return str(row["id"]) if row else None

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        """Store the id. A repeat changes nothing."""
        self._table.write(table.put({"PartitionKey": kind, "RowKey": digest, "id": asset_id}))
