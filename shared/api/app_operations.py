"""The operations of the app itself, and of what can be submitted to it."""

from __future__ import annotations

from shared.kernel.operation import ANYONE, Group, Operation

ANSWERS = "shared.api.app"

SUBMITTABLE = Group(
    "Trainers and routes",
    (
        Operation(
            "list_trainers", "GET", "trainers", ANSWERS, "The trainers, each with its parameters",
            "Description, routes, and the parameters as a JSON Schema",
        ),
        Operation(
            "list_routes", "GET", "routes", ANSWERS, "The routes, each with its limits and parameters",
            "Trainer, cluster, nodes, limits, and the same schema",
        ),
        Operation(
            "check_route", "POST", "routes/{route}/check", ANSWERS, "What a drop with this job file would become",
            "Or 422. Makes nothing", problems=(404, 422),
        ),
        Operation(
            "register_assets", "POST", "register", ANSWERS, "Register the trainers' assets, and check the routes",
            "Code and environment in Azure ML, if new: their ids, and what would stop each route's jobs",
        ),
    ),
)  # fmt: skip

APP = Group(
    "The app",
    (
        Operation(
            "health", "GET", "health", ANSWERS, "Whether storage and workspace answer",
            "200, or 503 with what they said", needs=ANYONE, own_threads=True,
        ),
        Operation(
            "get_status", "GET", "status", ANSWERS, "Queues, poison messages, open drops, newest runs, clusters",
            "The 10 newest runs; rejected drops too",
        ),
        Operation(
            "replay", "POST", "queues/{queue}/replay", ANSWERS,
            "Give back what was set aside: poison messages and dead letters",
            "Up to 1,000 messages and 1,000 files: `{\"queue\", \"messages\", \"dead_letters\", \"left\"}` (those that "
            "stay). `?dry_run=true` counts", problems=(404,),
        ),
        Operation("get_me", "GET", "me", ANSWERS, "Who calls, and what they may do"),
        Operation("get_openapi", "GET", "openapi.json", ANSWERS, "This document", "OpenAPI 3.1"),
    ),
    "The [web page](page.md), without data, is at `/api/page` for anyone.",
)  # fmt: skip
