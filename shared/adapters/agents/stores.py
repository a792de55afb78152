"""The store of plans, in the table `plans` of Azure Table Storage.

partition   key    row
<caller>    <id>   the plan

A caller's old plans are removed when the caller makes another one, so the table needs no timer.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, to_row
from shared.adapters.tables.table import Table
from shared.agents.plans import KEPT, PLANS, SubmissionPlan

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

    from shared.adapters.storage.account import StorageClients
    from shared.kernel.settings import Workspace

MOST_REMOVED = 90  # by one call; a transaction has at most 100 operations


def stores(clients: StorageClients, _: Workspace) -> dict[str, Any]:
    """Return the store of plans, by its name. Sends no request."""
    return {PLANS.name: TablePlans(clients.table)}


class TablePlans:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "plans")

    def put(self, plan: SubmissionPlan) -> None:
        caller = keys.token(plan.caller)
        plans = readable(SubmissionPlan, self._table.query(caller, "", "~~"))
        old = (each.id for each in plans if each.made_at < plan.made_at - KEPT and each.id != plan.id)
        gone = [("delete", {"PartitionKey": caller, "RowKey": plan_id}) for plan_id in islice(old, MOST_REMOVED)]
        self._table.write(table.put({"PartitionKey": caller, "RowKey": plan.id, **to_row(plan)}), *gone)

    def get(self, caller: str, plan: str) -> SubmissionPlan | None:
        row = self._table.get(keys.token(caller), plan)
        return from_row(SubmissionPlan, row) if row else None
