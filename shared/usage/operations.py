"""The HTTP operations of usage."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

GROUP = OperationGroup(
    "[Usage of nodes](usage.md)",
    (
        Operation(
            "get_run_usage", "GET", "runs/{run}/usage", "shared.usage.api",
            "Show how a run's nodes were used",
            "Samples by node and time, their summary, a sentence, and advice where the measurements allow it",
            problems=(404,),
        ),
    ),
)  # fmt: skip
