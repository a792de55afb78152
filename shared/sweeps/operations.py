"""The HTTP operations of sweeps."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

GROUP = OperationGroup(
    "[Sweeps](sweeps.md)",
    (
        Operation(
            "list_trials", "GET", "runs/{run}/trials", "shared.sweeps.api",
            "The trials of a sweep", "Each has its values, state and dollars. `importance` is of each parameter",
            problems=(404, 422),
        ),
    ),
)  # fmt: skip
