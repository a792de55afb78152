"""The API operations of removals, retention and space."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

ANSWERS = "shared.removals.api"

GROUP = OperationGroup(
    "Space",
    (
        Operation(
            "remove_run", "POST", "runs/{run}/remove", ANSWERS,
            "Remove the files of a run",
            "[All files of the run](operations.md#show-what-uses-the-storage) are deleted; its record stays and gets "
            "`removed_at`, "
            "`removed_by`, `removed_by_id`. 409 while it, or a run that continues it, has not ended",
            status=202, problems=(404, 409),
        ),
        Operation(
            "remove_drop", "POST", "drops/{route}/{name}/remove", ANSWERS,
            "Remove a drop, its files and its record", "409 while the drop is collecting, or a run of it has not ended",
            status=202, problems=(404, 409),
        ),
        Operation(
            "list_removals", "GET", "removals", ANSWERS,
            "List the newest removals", "Each entry says what was removed, by whom, when and why",
        ),
        Operation("get_retention", "GET", "retention", ANSWERS, "List what retention will remove within a week"),
        Operation(
            "get_usage", "GET", "usage", ANSWERS,
            "Show what uses the storage", "The bytes of each kind, and the 50 runs and drops with the most bytes",
        ),
    ),
)  # fmt: skip
