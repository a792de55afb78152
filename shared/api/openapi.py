"""The HTTP API as an OpenAPI 3.1 document, from the models that check the requests. A test holds it against the app."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from shared.api import answers, data, nodes, notices, removals, requests, rows, schedules
from shared.clusters.leases import LEASE_ID
from shared.kernel.names import NAME
from shared.runs.model import RUN_NAME
from shared.system import QUEUES

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
    416: "The log has no such bytes",
    422: "The request asks for what isn't there, or can't be",
    500: "A setting is wrong, or the app has a fault",
    503: "Storage or workspace don't answer: try again",
}
ALWAYS = (400, 401, 403, 500, 503)
LOG_HEADERS = {
    "x-next-offset": {"schema": {"type": "integer"}, "description": "The offset to go on with"},
    "x-log-complete": {"schema": {"enum": ["true", "false"]}, "description": "Whether the log ends with these bytes"},
    "x-ranks": {"schema": {"type": "string"}, "description": "The ranks that have logs, with commas"},
}
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


@dataclass(frozen=True)
class Operation:
    """One method of one path. `answers` are the good ones by status: a model, or None for one without JSON."""

    method: str
    path: str
    summary: str
    answers: dict[int, Any]
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    headers: dict[str, Json] = field(default_factory=dict)
    problems: tuple[int, ...] = ()


_KEY = {
    "Idempotency-Key": msgspec.json.schema(requests.Key)
    | {"description": "Makes a repeat the same run: up to 128 printable ASCII characters."}
}
_RANGE = {"Range": {"type": "string", "description": "One range of bytes, instead of offset."}}
_R, _A = requests, answers

OPERATIONS = [
    Operation("get", "health", "Whether storage and workspace answer", {200: _A.Health, 503: _A.Health}),
    Operation("get", "status", "Queues, poison messages, open drops, newest runs, clusters", {200: _A.Status}),
    Operation("get", "openapi.json", "This document", {200: Json}),
    Operation(
        "get", "find", "The run or drop that a name means", {200: _A.Found}, _R.FindQuery, problems=(404, 409, 422)
    ),
    Operation(
        "get",
        "compare",
        "What is different between runs",
        {200: _A.Compared},
        _R.CompareQuery,
        problems=(404, 409, 422),
    ),
    Operation("get", "trainers", "The trainers, each with its parameters", {200: list[_A.Trainer]}),
    Operation("get", "routes", "The routes, each with its limits and parameters", {200: list[_A.Route]}),
    Operation(
        "post",
        "routes/{route}/check",
        "What a drop with this job file would become",
        {200: _A.CheckedRoute},
        body=_R.RouteCheck,
        problems=(404, 422),
    ),
    Operation("post", "register", "Register the trainers' assets, and check the routes", {200: _A.Registered}),
    Operation("get", "drops", "The drops by name", {200: list[_A.Drop]}, _R.DropsQuery),
    Operation("get", "drops/{route}/{name}", "One drop, and why it did not start", {200: _A.Drop}, problems=(404,)),
    Operation(
        "get",
        "drops/{route}/{name}/generations",
        "The drop's generations, newest first",
        {200: list[data.Generation]},
        problems=(404,),
    ),
    Operation(
        "post",
        "drops/{route}/{name}/again",
        "Train the drop's newest generation once more",
        {202: _A.Accepted},
        headers=_KEY,
        problems=(404, 409),
    ),
    Operation(
        "get", "data/files", "The files of a generation or run", {200: data.Files}, data.FilesQuery, problems=(404, 422)
    ),
    Operation(
        "get", "data/diff", "How two lists of files differ", {200: data.Diff}, data.DiffQuery, problems=(404, 422)
    ),
    Operation(
        "post",
        "uploads",
        "Which files of a folder for a job are to be sent, and where to",
        {200: _A.Folder},
        body=_R.FolderRequest,
        problems=(422,),
    ),
    Operation("get", "notices", "The subscriptions to notices", {200: list[notices.Subscription]}),
    Operation(
        "post",
        "notices",
        "Subscribe to notices",
        {201: notices.NewSubscription},
        body=notices.SubscriptionRequest,
        problems=(422,),
    ),
    Operation("delete", "notices/{subscription}", "Take a subscription away", {200: notices.Removed}, problems=(404,)),
    Operation(
        "post", "notices/{subscription}/test", "Send a test notice to it", {202: notices.Tested}, problems=(404,)
    ),
    Operation(
        "get",
        "notices/{subscription}/deliveries",
        "What became of its newest notices",
        {200: list[notices.Delivery]},
        problems=(404,),
    ),
    Operation("get", "schedules", "The schedules", {200: list[schedules.Schedule]}),
    Operation(
        "post",
        "schedules",
        "Make a schedule, or say what it would do",
        {200: schedules.Preview, 201: schedules.Schedule},
        schedules.DryRunQuery,
        schedules.ScheduleRequest,
        problems=(404, 409, 422),
    ),
    Operation("delete", "schedules/{schedule}", "Take a schedule away", {200: schedules.Removed}, problems=(404,)),
    Operation("post", "schedules/{schedule}/pause", "Pause a schedule", {200: schedules.Schedule}, problems=(404,)),
    Operation("post", "schedules/{schedule}/resume", "Go on from now", {200: schedules.Schedule}, problems=(404,)),
    Operation(
        "get",
        "schedules/{schedule}/firings",
        "What became of its newest instants",
        {200: list[schedules.Firing]},
        problems=(404,),
    ),
    Operation(
        "post", "runs/{run}/remove", "Let all go that the run left", {202: removals.Removal}, problems=(404, 409)
    ),
    Operation("post", "drops/{route}/{name}/remove", "Let a drop go", {202: removals.Removal}, problems=(404, 409)),
    Operation("get", "removals", "The newest removals", {200: list[removals.Removal]}),
    Operation("get", "retention", "What retention will let go within a week", {200: list[removals.Going]}),
    Operation("get", "usage", "What takes the space", {200: removals.Usage}),
    Operation("get", "runs", "A page of runs, newest first", {200: _A.RunPage}, _R.RunsQuery, problems=(422,)),
    Operation(
        "post",
        "runs",
        "Make a run, or say what would be made",
        {200: _A.DryRun, 202: _A.Accepted},
        _R.CreateQuery,
        _R.RunRequest,
        _KEY,
        (404, 409, 422),
    ),
    Operation(
        "post",
        "imports",
        "What a Batch AI document becomes; makes nothing",
        {200: _A.Imported},
        body=_R.ImportRequest,
        problems=(422,),
    ),
    Operation(
        "get",
        "rows",
        "The runs as rows of a table, and what changed",
        {200: rows.Rows},
        rows.RowsQuery,
        problems=(422,),
    ),
    Operation("get", "runs/{run}", "One run with its history", {200: _A.Run}, problems=(404,)),
    Operation("delete", "runs/{run}", "The same as cancel", {200: _A.Accepted, 202: _A.Accepted}, problems=(404,)),
    Operation(
        "post",
        "runs/{run}/cancel",
        "Ask for the run's end; 200 if it has ended",
        {200: _A.Accepted, 202: _A.Accepted},
        problems=(404,),
    ),
    Operation(
        "post",
        "runs/{run}/retry",
        "A new run with this one's job",
        {202: _A.Accepted},
        body=_R.Changes,
        problems=(404, 409, 422),
    ),
    Operation(
        "post",
        "runs/{run}/continue",
        "A new run that goes on from this one's checkpoint",
        {202: _A.Accepted},
        body=_R.Changes,
        problems=(404, 409, 422),
    ),
    Operation(
        "post", "runs/{run}/notes", "Write a note on the run", {200: _A.Run}, body=_R.NoteRequest, problems=(404, 422)
    ),
    Operation(
        "post", "runs/{run}/tags", "Change the run's tags", {200: _A.Run}, body=_R.TagsRequest, problems=(404, 422)
    ),
    Operation(
        "post",
        "runs/{run}/members/{member}/evict",
        "End a member's job, as losing its node does",
        {202: _A.Evicted},
        problems=(404, 409, 422),
    ),
    Operation(
        "get",
        "runs/{run}/logs",
        "A rank's log from a byte on",
        {200: None, 206: None},
        _R.LogQuery,
        headers=_RANGE,
        problems=(404, 416),
    ),
    Operation(
        "get", "runs/{run}/metrics", "The run's metrics as series", {200: _A.Series}, _R.MetricsQuery, problems=(404,)
    ),
    Operation(
        "get",
        "runs/{run}/artifacts",
        "The files of the run's archive",
        {200: _A.Artifacts},
        _R.ArtifactsQuery,
        problems=(404,),
    ),
    Operation(
        "get",
        "runs/{run}/artifacts/{path}",
        "A redirect to a short-lived address; `link`: the address",
        {200: _A.Link, 302: None},
        _R.ArtifactQuery,
        problems=(404,),
    ),
    Operation(
        "get",
        "runs/{run}/live",
        "The run and what is new since the last look",
        {200: _A.Live},
        _R.LiveQuery,
        problems=(404, 422),
    ),
    Operation("get", "curves", "Curves of several runs", {200: _A.Curves}, _R.CurvesQuery, problems=(404, 422)),
    Operation(
        "get",
        "nodes",
        "The clusters' nodes and decisions of late",
        {200: nodes.NodesReport},
        nodes.NodesQuery,
    ),
    Operation(
        "post",
        "queues/{queue}/replay",
        "Give back the messages that were set aside",
        {200: _A.GivenBack},
        problems=(404,),
    ),
    Operation("get", "me", "Who calls, and what they may do", {200: _A.Me}),
    Operation(
        "post",
        "drops/{route}/{name}/uploads",
        "Addresses to upload a drop's files to",
        {200: _A.Uploads},
        body=_R.UploadRequest,
        problems=(422,),
    ),
    Operation("get", "clusters", "The clusters with the latest decision about each", {200: list[_A.Cluster]}),
    Operation(
        "post",
        "clusters/{cluster}/scale-to-zero",
        "Bring a cluster to zero unless it is needed",
        {202: _A.Scaled},
        _R.ScaleQuery,
        problems=(404, 409),
    ),
    Operation(
        "get",
        "costs",
        "What the nodes cost, and how the budgets stand",
        {200: _A.CostReport},
        _R.CostsQuery,
        problems=(422,),
    ),
    Operation("get", "leases", "The leases that hold nodes now", {200: list[_A.Lease]}),
    Operation(
        "post",
        "clusters/{cluster}/leases",
        "Keep nodes of a cluster warm for some time",
        {201: _A.Lease},
        body=_R.LeaseRequest,
        problems=(404, 409, 422),
    ),
    Operation(
        "post",
        "leases/{lease}/extend",
        "Let a lease go on for longer",
        {200: _A.Lease},
        body=_R.LeaseExtension,
        problems=(404, 409, 422),
    ),
    Operation("delete", "leases/{lease}", "End a lease now", {200: _A.Lease}, problems=(404,)),
]


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
    known = dict(zip(map(repr, models), schemas, strict=False))
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/{operation.path}", {})[operation.method] = _operation(operation, known, components)
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


def _operation(operation: Operation, known: dict[str, Json], components: Json) -> Json:
    found: Json = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method} {operation.path}").strip("_"),
        "summary": operation.summary,
        "parameters": list(_parameters(operation, components)),
        "responses": {str(s): _good(operation, s, known) for s in operation.answers}
        | {str(status): _bad(status) for status in (*ALWAYS, *operation.problems) if status not in operation.answers},
    }
    if operation.path == "health":
        found["security"] = []
    if operation.body:
        content = {"application/json": {"schema": known[repr(operation.body)]}}
        found["requestBody"] = {"required": operation.body is not requests.Changes, "content": content}
    return found


def _parameters(operation: Operation, components: Json) -> Any:
    for name in re.findall(r"\{(\w+)\}", operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name]}
    for name, schema in operation.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": schema}
    query = components[operation.query.__name__] if operation.query else {}
    for name, schema in query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}


def _good(operation: Operation, status: int, known: dict[str, Json]) -> Json:
    model = operation.answers[status]
    answered: Json = {"description": operation.summary}
    if status == 302:
        answered["headers"] = {"Location": {"schema": {"type": "string"}, "required": True}}
    elif model is None:
        answered |= {"content": {"text/plain": {"schema": {"type": "string"}}}, "headers": LOG_HEADERS}
    else:
        answered["content"] = {"application/json": {"schema": known[repr(model)]}}
    if model is answers.Accepted:
        answered["links"] = LINKS
    return answered


def _bad(status: int) -> Json:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    # The host and App Service answer before the app does, without a body.
    return {"description": PROBLEMS[status], **({} if status in (401, 500) else {"content": content})}
