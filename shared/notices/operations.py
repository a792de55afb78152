"""The operations of notices."""

from __future__ import annotations

from shared.kernel.operation import Group, Operation

ANSWERS = "shared.notices.api"

GROUP = Group(
    "[Notices](schedules-and-notices.md)",
    (
        Operation(
            "list_subscriptions", "GET", "notices", ANSWERS, "The subscriptions to notices", "Their addresses in part"
        ),
        Operation(
            "add_subscription", "POST", "notices", ANSWERS, "Subscribe to notices",
            "`on`, `to`, and optionally `channel`, `route`, `experiment`; a webhook's `secret` comes only this once",
            problems=(422,),
        ),
        Operation(
            "test_subscription", "POST", "notices/{subscription}/test", ANSWERS, "Send a test notice to it",
            status=202, problems=(404,),
        ),
        Operation(
            "list_deliveries", "GET", "notices/{subscription}/deliveries", ANSWERS, "What became of its newest notices",
            "State, tries, error", problems=(404,),
        ),
        Operation(
            "remove_subscription", "DELETE", "notices/{subscription}", ANSWERS, "Take a subscription away",
            problems=(404,),
        ),
    ),
)  # fmt: skip
