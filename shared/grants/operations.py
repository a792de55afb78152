"""The HTTP operations of grants."""

from __future__ import annotations

from shared.kernel.operation import CONTRIBUTOR, Operation, OperationGroup

ANSWERS = "shared.grants.api"

GROUP = OperationGroup(
    "[Grants](grants.md)",
    (
        Operation(
            "list_grants", "GET", "grants", ANSWERS,
            "The grants with what they have spent, reserved and left",
            "Newest first. `?open=true` leaves out those that are over", needs=CONTRIBUTOR,
        ),
        Operation(
            "create_grant", "POST", "grants", ANSWERS,
            "Create a grant, and show its token once",
            'Give `{"purpose", "budget", "until", "may", "routes", "trainers", "clusters", ...}`. The answer has the '
            "`token`, which nobody can read again",
            status=201, problems=(422,), no_key="each call makes a grant of its own, and its token is shown once.",
        ),
        Operation(
            "get_grant", "GET", "grants/{grant}", ANSWERS,
            "Show a grant with its history and its runs in progress", problems=(404,), needs=CONTRIBUTOR,
        ),
        Operation(
            "narrow_grant", "POST", "grants/{grant}/narrow", ANSWERS,
            "Take something from a grant", "Give what changes. 422 for a change that would add something",
            problems=(404, 409, 422),
        ),
        Operation(
            "extend_grant", "POST", "grants/{grant}/extend", ANSWERS,
            "Add something to a grant", "Give what changes. You can't add what you may not do",
            problems=(404, 409, 422),
        ),
        Operation(
            "revoke_grant", "DELETE", "grants/{grant}", ANSWERS,
            "End a grant now", "`?then=` says what happens to its runs in progress: finish or cancel. The record stays",
            problems=(404,),
        ),
        Operation(
            "get_own_grant", "GET", "grant", ANSWERS,
            "Show the grant of the token that this request carries", "404 for a caller without such a token",
            problems=(404,),
        ),
    ),
    "With a token, send `Authorization: Bearer tg_...` to `/api/granted/<path>` instead of `/api/<path>`.",
)  # fmt: skip
