"""The API operations of the app itself, and of its trainers and routes."""

from __future__ import annotations

from shared.kernel.operation import ANYONE, CODER, Operation, OperationGroup

ANSWERS = "shared.api.app"

SUBMITTABLE = OperationGroup(
    "Trainers and routes",
    (
        Operation(
            "list_trainers", "GET", "trainers", ANSWERS,
            "List the trainers with their parameters",
            "Each has its description, routes, and the parameters as a JSON Schema",
        ),
        Operation(
            "list_routes", "GET", "routes", ANSWERS,
            "List the routes with their limits and parameters",
            "Each has its trainer, cluster, nodes, limits, and the parameters as a JSON Schema",
        ),
        Operation(
            "check_route", "POST", "routes/{route}/check", ANSWERS,
            "Show the job that a drop with this job file would run", "422 says what is wrong. Creates nothing",
            problems=(404, 422),
        ),
        Operation(
            "register_assets", "POST", "register", ANSWERS,
            "Register the trainers' assets, and check the routes",
            "Code and environment are registered in Azure ML if they are new. The answer has their ids, and what "
            "would stop each route's jobs",
        ),
    ),
)  # fmt: skip

APP = OperationGroup(
    "The app",
    (
        Operation(
            "health", "GET", "health", ANSWERS,
            "Check whether storage and workspace answer", "503 names the one that does not answer",
            needs=ANYONE, own_threads=True,
        ),
        Operation(
            "get_today", "GET", "today", "shared.api.today",
            "Show what needs somebody, what goes on, and what happened since yesterday",
            "Failed runs, rejected drops, nearly spent budgets, poison messages, late runs, idle leased nodes; running "
            "and waiting runs; completed runs, promotions, costs, and what schedules start next. At most 5 s old. "
            "`unknown` names the parts that can't be read",
        ),
        Operation(
            "get_status", "GET", "status", "shared.api.status",
            "Show queues, poison messages, open drops, newest runs and clusters",
            "Includes the 10 newest runs, and rejected drops. Queues and clusters are at most 5 seconds old",
        ),
        Operation(
            "replay", "POST", "queues/{queue}/replay", ANSWERS,
            "Return poison messages and dead letters to a queue",
            'Up to 1,000 messages and 1,000 files at once. The answer is `{"queue", "messages", "dead_letters", '
            '"left"}`; `left` are the files that stay. `?dry_run=true` only counts',
            problems=(404,),
        ),
        Operation(
            "get_settings", "GET", "settings", "shared.api.deployment_settings",
            "Show the settings of the deployment with the values in use",
            "Each has its explanation, the value or the default, and whether it is set. Secrets have no value",
            needs=CODER,
        ),
        Operation("get_me", "GET", "me", ANSWERS, "Show the caller and their permissions"),
        Operation("get_openapi", "GET", "openapi.json", ANSWERS, "This API as an OpenAPI 3.1 document"),
    ),
    "The [web page](page.md), without data, is at `/api/page` for anyone.",
)  # fmt: skip
