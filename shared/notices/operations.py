"""The API operations of notices."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

ANSWERS = "shared.notices.api"

GROUP = OperationGroup(
    "[Notices](schedules-and-notices.md)",
    (
        Operation(
            "list_subscriptions", "GET", "notices", ANSWERS,
            "List the subscriptions to notices", "Addresses are shown in part",
        ),
        Operation(
            "add_subscription", "POST", "notices", ANSWERS,
            "Subscribe to notices",
            "Give `on`, `to`, and optionally `channel`, `route`, `experiment`; only this answer has a webhook's "
            "`secret`",
            problems=(409, 422),
        ),
        Operation(
            "test_subscription", "POST", "notices/{subscription}/test", ANSWERS,
            "Send a test notice to a subscription", status=202, problems=(404, 422), no_key="each call sends a notice.",
        ),
        Operation(
            "list_deliveries", "GET", "notices/{subscription}/deliveries", ANSWERS,
            "List the newest deliveries to a subscription", "Each has its state, tries and error", problems=(404,),
        ),
        Operation(
            "remove_subscription", "DELETE", "notices/{subscription}", ANSWERS,
            "Remove a subscription", problems=(404,),
        ),
    ),
)  # fmt: skip
