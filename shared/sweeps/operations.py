"""The operations of sweeps."""

from __future__ import annotations

from shared.kernel.operation import Group, Operation

GROUP = Group(
    "[Sweeps](sweeps.md)",
    (
        Operation(
            "list_trials", "GET", "runs/{run}/trials", "shared.sweeps.api", "A sweep's trials",
            "Values, state, dollars; each parameter's `importance`", problems=(404, 422),
        ),
    ),
)  # fmt: skip
