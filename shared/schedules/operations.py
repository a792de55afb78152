"""The API operations of schedules."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

ANSWERS = "shared.schedules.api"

GROUP = OperationGroup(
    "[Schedules](schedules-and-notices.md)",
    (
        Operation("list_schedules", "GET", "schedules", ANSWERS, "The schedules, with their next firings"),
        Operation(
            "add_schedule", "POST", "schedules", ANSWERS,
            "Make a schedule, or say what it would do",
            "Give `run` (as for `POST /api/runs`), `cron` and `timezone`, or `route` and `new_files`; `catch_up`, "
            "`overlap`. Its `reasons` say why a run could not start now. `?dry_run=true` gives the firings and the "
            "job, and makes nothing",
            problems=(404, 409, 422), code="a `run` that has a whole `job`",
        ),
        Operation("pause_schedule", "POST", "schedules/{schedule}/pause", ANSWERS, "Pause a schedule", problems=(404,)),
        Operation(
            "resume_schedule", "POST", "schedules/{schedule}/resume", ANSWERS,
            "Resume a schedule from now on", problems=(404,),
        ),
        Operation(
            "remove_schedule", "DELETE", "schedules/{schedule}", ANSWERS,
            "Remove a schedule", "Its runs continue", problems=(404,),
        ),
        Operation(
            "list_firings", "GET", "schedules/{schedule}/firings", ANSWERS,
            "The newest firings of a schedule", "Each was started, was skipped or has failed, and says why",
            problems=(404,),
        ),
    ),
)  # fmt: skip
