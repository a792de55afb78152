"""The API operations of money."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

GROUP = OperationGroup(
    "Money",
    (
        Operation(
            "get_costs", "GET", "costs", "shared.money.api",
            "Show what the nodes cost, and the state of the budgets",
            "Since `?since=` (default: this month), by day, and `?by=` run, cluster, project, owner or grant. The "
            "charges are those at `until`, at most ten seconds ago",
            problems=(422,),
        ),
    ),
)  # fmt: skip
