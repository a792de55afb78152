"""The HTTP operations of elastic runs."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

GROUP = OperationGroup(
    "[Elastic runs](elastic.md)",
    (
        Operation(
            "evict_member", "POST", "runs/{run}/members/{member}/evict", "shared.elastic.api",
            "End the job of a member of an elastic run",
            "The run continues as if the member had [lost its node](elastic.md)",
            status=202, problems=(404, 409, 422), no_key="each call ends the member's current job.",
        ),
    ),
)  # fmt: skip
