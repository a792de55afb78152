"""The HTTP API as an OpenAPI 3.1 document, from the models that check the requests. A test holds it against the app."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from shared.api import answers, requests, run_answers
from shared.api.operations import LOG_HEADERS, OPERATIONS, Operation
from shared.clusters.lease_model import LEASE_ID
from shared.kernel.names import NAME
from shared.messages.declared import QUEUES
from shared.models import model as models
from shared.runs.names import RUN_NAME

Json = dict[str, Any]

# Text of the path's {parameters}. A drop's name may be anything that a blob's may, so the check is the service's.
PATH_PARAMETERS: dict[str, Json] = {
    "run": {"type": "string", "pattern": f"^{RUN_NAME.pattern}$"},
    "member": {"type": "string", "pattern": "^[0-9]{1,4}$"},
    "queue": {"enum": list(QUEUES)},
    "cluster": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    "lease": {"type": "string", "pattern": f"^{LEASE_ID.pattern}$"},
    "route": {"type": "string", "minLength": 1},
    "name": {"type": "string", "minLength": 1},
    "model": {"type": "string", "pattern": f"^{models.NAME.pattern}$"},
    "alias": {"type": "string", "pattern": f"^{models.ALIAS.pattern}$"},
    "version": {"type": "string", "pattern": f"^({models.NUMBER.pattern}|{models.ALIAS.pattern})$"},
    "subscription": {"type": "string", "pattern": "^[a-z0-9-]{1,40}$"},
    "schedule": {"type": "string", "pattern": "^[a-z0-9-]{1,40}$"},
    "path": {"type": "string", "minLength": 1, "description": "A name from the run's artifacts; it may hold slashes."},
}
PROBLEMS = {
    400: "The request can't be read as one: the detail says where",
    401: "No key, a wrong one, or nobody signed in",
    403: "The caller's roles don't allow it",
    404: "There is no such thing",
    409: "It can't be done as things are now",
    411: "A body came in chunks, without its length",
    416: "The log has no such bytes",
    422: "The request asks for what isn't there, or can't be",
    500: "A setting is wrong, or the app has a fault",
    503: "Storage or workspace don't answer: try again",
}
ALWAYS = (400, 401, 403, 500, 503)
LINKS = {  # from an answer that names a run to what can be asked of it
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
    """The document. Every call gives the same one; don't change it."""
    models = [m for o in OPERATIONS for m in (o.query, o.body, *o.answers.values()) if m is not None]
    schemas, components = msgspec.json.schema_components(
        [*models, answers.Problem], ref_template="#/components/schemas/{name}"
    )
    components["RunRequest"]["oneOf"] = [
        _names("trainer", "string"),
        _names("template", "string"),
        _names("job", "object"),
    ]
    schema_of = dict(zip(map(repr, models), schemas, strict=False))
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/{operation.path}", {})[operation.method] = _operation(operation, schema_of, components)
    queries = {o.query.__name__ for o in OPERATIONS if o.query}
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


def _problems(operation: Operation) -> tuple[int, ...]:
    return (*ALWAYS, *([] if operation.method == "get" else [411]), *operation.problems)


def _operation(operation: Operation, schema_of: dict[str, Json], components: Json) -> Json:
    definition: Json = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method} {operation.path}").strip("_"),
        "summary": operation.summary,
        "parameters": list(_parameters(operation, components)),
        "responses": {str(s): _good(operation, s, schema_of) for s in operation.answers}
        | {str(status): _bad(status) for status in _problems(operation) if status not in operation.answers},
    }
    if operation.path == "health":
        definition["security"] = []
    if operation.body:
        content = {"application/json": {"schema": schema_of[repr(operation.body)]}}
        definition["requestBody"] = {"required": operation.body is not requests.Changes, "content": content}
    return definition


def _parameters(operation: Operation, components: Json) -> Any:
    for name in re.findall(r"\{(\w+)\}", operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name]}
    for name, schema in operation.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": schema}
    query = components[operation.query.__name__] if operation.query else {}
    for name, schema in query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}


def _good(operation: Operation, status: int, schema_of: dict[str, Json]) -> Json:
    model = operation.answers[status]
    answered: Json = {"description": operation.summary}
    if status == 302:
        answered["headers"] = {"Location": {"schema": {"type": "string"}, "required": True}}
    elif model is None:
        answered |= {"content": {"text/plain": {"schema": {"type": "string"}}}, "headers": LOG_HEADERS}
    else:
        answered["content"] = {"application/json": {"schema": schema_of[repr(model)]}}
    if model is run_answers.Accepted:
        answered["links"] = LINKS
    return answered


def _bad(status: int) -> Json:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    # The host and App Service answer before the app does, without a body.
    return {"description": PROBLEMS[status], **({} if status in (401, 500) else {"content": content})}
