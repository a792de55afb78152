"""The HTTP API as an OpenAPI 3.1 document, generated from the operations' declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from shared.api import answers
from shared.api.registry import OPERATIONS
from shared.api.signature import signature
from shared.kernel import parsing
from shared.kernel.operation import ANYONE, Operation
from shared.runs.answers import Accepted

Json = dict[str, Any]

LOG_HEADERS = {
    "x-next-offset": {"schema": {"type": "integer"}, "description": "The offset to go on with"},
    "x-log-complete": {"schema": {"enum": ["true", "false"]}, "description": "Whether the log ends with these bytes"},
    "x-ranks": {"schema": {"type": "string"}, "description": "The ranks that have logs, with commas"},
}
HEADERS: dict[str, tuple[str, Json]] = {  # by the name of the function's parameter
    "key": (
        "Idempotency-Key",
        {
            "type": "string",
            "pattern": "^[ -~]{1,128}$",
            "description": "A repeated request with the same key creates nothing more: up to 128 printable ASCII "
            "characters.",
        },
    ),
    "range_header": ("Range", {"type": "string", "description": "One range of bytes, instead of offset."}),
}
PROBLEMS = {
    400: "The request is malformed: the detail says where",
    401: "The key or token is missing or wrong",
    403: "The caller's roles don't allow it",
    404: "There is no such thing",
    409: "The current state does not allow it",
    411: "A body came in chunks, without its length",
    416: "The log has no such bytes",
    422: "A value in the request is invalid, or names something that does not exist",
    500: "A setting is wrong, or the app has a bug",
    503: "Storage or the workspace does not answer: try again",
}
ALWAYS = (400, 401, 403, 500, 503)
LINKS = {  # from an answer that names a run to the operations on that run
    name: {"operationId": operation_id, "parameters": {"run": "$response.body#/run"}}
    for name, operation_id in (
        ("run", "get_runs_run"),
        ("logs", "get_runs_run_logs"),
        ("metrics", "get_runs_run_metrics"),
        ("artifacts", "get_runs_run_artifacts"),
        ("cancel", "post_runs_run_cancel"),
        ("retry", "post_runs_run_retry"),
        ("continue", "post_runs_run_continue"),
    )
}


@cache
def document() -> Json:
    """Return the document. Every call returns the shared document; do not modify it."""
    declared = [signature(operation) for operation in OPERATIONS]
    models = [m for s in declared for m in (s.query, s.body, *s.answers.values()) if m is not None]
    schemas, components = parsing.schemas([*models, answers.ProblemDetails], "#/components/schemas/{name}")
    components["RunRequest"]["oneOf"] = [
        _names("trainer", "string"),
        _names("template", "string"),
        _names("job", "object"),
    ]
    schema_of = dict(zip(map(repr, models), schemas, strict=False))
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        described = _operation(operation, schema_of, components)
        paths.setdefault(f"/{_plain_path(operation)}", {})[operation.method.lower()] = described
    queries = {s.query.__name__ for s in declared if s.query}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trainyard", "version": "1", "description": "Drop data, get a trained model back."},
        "servers": [{"url": "/api"}],
        "security": [{"functionKey": []}, {"entra": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "functionKey": {"type": "apiKey", "in": "header", "name": "x-functions-key"},
                "entra": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
        },
    }


def _names(member: str, kind: str) -> Json:
    return {"required": [member], "properties": {member: {"type": kind}}}


def _plain_path(operation: Operation) -> str:
    """Return the path as OpenAPI writes it: OpenAPI has no {*path}."""
    return operation.path.replace("{*", "{")


def operation_id(operation: Operation) -> str:
    return re.sub(r"\W+", "_", f"{operation.method.lower()} {_plain_path(operation)}").strip("_")


def problems(operation: Operation) -> tuple[int, ...]:
    return (*ALWAYS, *([] if operation.method == "GET" else [411]), *operation.problems)


def _operation(operation: Operation, schema_of: dict[str, Json], components: Json) -> Json:
    declared = signature(operation)
    definition: Json = {
        "operationId": operation_id(operation),
        "summary": operation.summary,
        "parameters": list(_parameters(operation, components)),
        "responses": {str(status): _good(operation, status, schema_of) for status in declared.answers}
        | {str(status): _bad(status) for status in problems(operation) if status not in declared.answers},
    }
    if operation.role == ANYONE:
        definition["security"] = []
    if declared.body:
        content = {"application/json": {"schema": schema_of[repr(declared.body)]}}
        definition["requestBody"] = {"required": declared.body_required, "content": content}
    return definition


def _parameters(operation: Operation, components: Json) -> Iterator[Json]:
    declared = signature(operation)
    for name in declared.path:
        (schema,), _ = parsing.schemas([declared.takes[name]], "#/components/schemas/{name}")
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    for parameter, (name, schema) in HEADERS.items():
        if parameter in declared.takes:
            yield {"name": name, "in": "header", "required": False, "schema": schema}
    query = components[declared.query.__name__] if declared.query else {}
    for name, schema in query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}


def _good(operation: Operation, status: int, schema_of: dict[str, Json]) -> Json:
    model = signature(operation).answers[status]
    answered: Json = {"description": operation.summary}
    if status == 302:
        answered["headers"] = {"Location": {"schema": {"type": "string"}, "required": True}}
    elif model is None:
        answered |= {"content": {"text/plain": {"schema": {"type": "string"}}}, "headers": LOG_HEADERS}
    else:
        answered["content"] = {"application/json": {"schema": schema_of[repr(model)]}}
    if model is Accepted:
        answered["links"] = LINKS
    return answered


def _bad(status: int) -> Json:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    # The host and App Service send these statuses without a body, before they call the app.
    return {"description": PROBLEMS[status], **({} if status in (401, 500) else {"content": content})}
