"""Every method of every path of the HTTP API: its question, its answers, and what can go wrong. Declarations alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from shared.api import (
    answers,
    costs,
    data,
    models,
    nodes,
    notices,
    records,
    removals,
    requests,
    rows,
    run_answers,
    schedules,
    trials,
)
from shared.runs.intake.request import RunRequest

Json = dict[str, Any]

LOG_HEADERS = {
    "x-next-offset": {"schema": {"type": "integer"}, "description": "The offset to go on with"},
    "x-log-complete": {"schema": {"enum": ["true", "false"]}, "description": "Whether the log ends with these bytes"},
    "x-ranks": {"schema": {"type": "string"}, "description": "The ranks that have logs, with commas"},
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


def _get(
    path: str, summary: str, answer: Any, query: type[msgspec.Struct] | None = None, problems: tuple[int, ...] = ()
) -> Operation:
    return Operation("get", path, summary, _by_status(answer), query, problems=problems)


def _post(
    path: str, summary: str, answer: Any, body: type[msgspec.Struct] | None = None, problems: tuple[int, ...] = ()
) -> Operation:
    return Operation("post", path, summary, _by_status(answer), body=body, problems=problems)


def _delete(path: str, summary: str, answer: Any) -> Operation:
    return Operation("delete", path, summary, _by_status(answer), problems=(404,))


def _by_status(answer: Any) -> dict[int, Any]:
    """One model is that of 200."""
    return answer if isinstance(answer, dict) else {200: answer}


OPERATIONS = [
    _get("health", "Whether storage and workspace answer", {200: answers.Health, 503: answers.Health}),
    _get("status", "Queues, poison messages, open drops, newest runs, clusters", answers.Status),
    _get("openapi.json", "This document", Json),
    _get("find", "The run or drop that a name means", answers.Found, requests.FindQuery, problems=(404, 409, 422)),
    _get(
        "compare",
        "What is different between runs",
        run_answers.Compared,
        requests.CompareQuery,
        problems=(404, 409, 422),
    ),
    _get("trainers", "The trainers, each with its parameters", list[answers.Trainer]),
    _get("routes", "The routes, each with its limits and parameters", list[answers.Route]),
    _post(
        "routes/{route}/check",
        "What a drop with this job file would become",
        answers.CheckedRoute,
        requests.RouteCheck,
        problems=(404, 422),
    ),
    _post("register", "Register the trainers' assets, and check the routes", answers.Registered),
    _get("drops", "The drops by name", list[records.Drop], requests.DropsQuery),
    _get("drops/{route}/{name}", "One drop, and why it did not start", records.Drop, problems=(404,)),
    _get(
        "drops/{route}/{name}/generations",
        "The drop's generations, newest first",
        list[data.Generation],
        problems=(404,),
    ),
    Operation(
        "post",
        "drops/{route}/{name}/again",
        "Train the drop's newest generation once more",
        {202: run_answers.Accepted},
        headers=_KEY,
        problems=(404, 409),
    ),
    _get("data/files", "The files of a generation or run", data.Files, data.FilesQuery, problems=(404, 422)),
    _get("data/diff", "How two lists of files differ", data.Diff, data.DiffQuery, problems=(404, 422)),
    _post(
        "uploads",
        "Which files of a folder for a job are to be sent, and where to",
        answers.Folder,
        requests.FolderRequest,
        problems=(422,),
    ),
    _get("notices", "The subscriptions to notices", list[notices.Subscription]),
    _post(
        "notices", "Subscribe to notices", {201: notices.NewSubscription}, notices.SubscriptionRequest, problems=(422,)
    ),
    _delete("notices/{subscription}", "Take a subscription away", notices.Removed),
    _post("notices/{subscription}/test", "Send a test notice to it", {202: notices.Tested}, problems=(404,)),
    _get(
        "notices/{subscription}/deliveries",
        "What became of its newest notices",
        list[notices.Delivery],
        problems=(404,),
    ),
    _get("schedules", "The schedules", list[schedules.Schedule]),
    Operation(
        "post",
        "schedules",
        "Make a schedule, or say what it would do",
        {200: schedules.Preview, 201: schedules.Added},
        query=schedules.DryRunQuery,
        body=schedules.ScheduleRequest,
        problems=(404, 409, 422),
    ),
    _delete("schedules/{schedule}", "Take a schedule away", schedules.Removed),
    _post("schedules/{schedule}/pause", "Pause a schedule", schedules.Schedule, problems=(404,)),
    _post("schedules/{schedule}/resume", "Go on from now", schedules.Schedule, problems=(404,)),
    _get("schedules/{schedule}/firings", "What became of its newest instants", list[schedules.Firing], problems=(404,)),
    _post("runs/{run}/remove", "Let all go that the run left", {202: removals.Removal}, problems=(404, 409)),
    _post("drops/{route}/{name}/remove", "Let a drop go", {202: removals.Removal}, problems=(404, 409)),
    _get("removals", "The newest removals", list[removals.Removal]),
    _get("retention", "What retention will let go within a week", list[removals.Going]),
    _get("usage", "What takes the space", removals.Usage),
    _get("runs", "A page of runs, newest first", run_answers.RunPage, requests.RunsQuery, problems=(422,)),
    Operation(
        "post",
        "runs",
        "Make a run, or say what would be made",
        {200: run_answers.DryRun, 202: run_answers.Accepted},
        query=requests.CreateQuery,
        body=RunRequest,
        headers=_KEY,
        problems=(404, 409, 422),
    ),
    _post(
        "imports",
        "What a Batch AI document becomes; makes nothing",
        run_answers.Imported,
        requests.ImportRequest,
        problems=(422,),
    ),
    _get("rows", "The runs as rows of a table, and what changed", rows.Rows, rows.RowsQuery, problems=(422,)),
    _get("models", "The models, with their aliases", list[models.Model]),
    _get("models/{model}", "A model's aliases, versions and history", models.ModelPage, problems=(404,)),
    _post(
        "models/{model}/versions",
        "Promote a run: make its model the next version",
        {201: models.Version},
        models.PromoteRequest,
        problems=(404, 409, 422),
    ),
    _post(
        "models/{model}/aliases/{alias}",
        "Point an alias at a version, or back where it was",
        models.Model,
        models.AliasRequest,
        problems=(404, 422),
    ),
    _get("models/{model}/versions/{version}", "A version, by its number or an alias", models.Version, problems=(404,)),
    _post(
        "models/{model}/versions/{version}/let-go",
        "Keep a version no longer",
        models.Version,
        models.LetGoRequest,
        problems=(404, 409),
    ),
    _get(
        "models/{model}/versions/{version}/files/{path}",
        "A redirect to a signed file, or to model.sig; `link`: the address",
        {200: answers.Link, 302: None},
        requests.ArtifactQuery,
        problems=(404,),
    ),
    _get(
        "models/{model}/versions/{version}/why",
        "Where the version comes from, each link looked at",
        models.Chain,
        problems=(404,),
    ),
    _post(
        "models/{model}/versions/{version}/reproduce",
        "Train the version again from its recorded parts",
        {202: run_answers.Accepted},
        problems=(404, 409, 422),
    ),
    _get(
        "models/{model}/versions/{version}/reproductions/{run}",
        "How a reproduction compares",
        models.Comparison,
        problems=(404, 409),
    ),
    _get("model-key", "The public key that models are signed with", models.Key),
    _get("runs/{run}", "One run with its history", records.Run, problems=(404,)),
    _delete("runs/{run}", "The same as cancel", {200: run_answers.Accepted, 202: run_answers.Accepted}),
    _post(
        "runs/{run}/cancel",
        "Ask for the run's end; 200 if it has ended",
        {200: run_answers.Accepted, 202: run_answers.Accepted},
        problems=(404,),
    ),
    _post(
        "runs/{run}/retry",
        "A new run with this one's job",
        {202: run_answers.Accepted},
        requests.Changes,
        problems=(404, 409, 422),
    ),
    _post(
        "runs/{run}/continue",
        "A new run that goes on from this one's checkpoint",
        {202: run_answers.Accepted},
        requests.Changes,
        problems=(404, 409, 422),
    ),
    _post("runs/{run}/notes", "Write a note on the run", records.Run, requests.NoteRequest, problems=(404, 422)),
    _post("runs/{run}/tags", "Change the run's tags", records.Run, requests.TagsRequest, problems=(404, 422)),
    _post(
        "runs/{run}/members/{member}/evict",
        "End a member's job, as losing its node does",
        {202: run_answers.Evicted},
        problems=(404, 409, 422),
    ),
    Operation(
        "get",
        "runs/{run}/logs",
        "A rank's log from a byte on",
        {200: None, 206: None},
        query=requests.LogQuery,
        headers=_RANGE,
        problems=(404, 416),
    ),
    _get("runs/{run}/trials", "A sweep's trials", trials.Trials, problems=(404, 422)),
    _get(
        "runs/{run}/metrics", "The run's metrics as series", run_answers.Series, requests.MetricsQuery, problems=(404,)
    ),
    _get(
        "runs/{run}/artifacts",
        "The files of the run's archive",
        run_answers.Artifacts,
        requests.ArtifactsQuery,
        problems=(404,),
    ),
    _get(
        "runs/{run}/artifacts/{path}",
        "A redirect to a short-lived address; `link`: the address",
        {200: answers.Link, 302: None},
        requests.ArtifactQuery,
        problems=(404,),
    ),
    _get(
        "runs/{run}/live",
        "The run and what is new since the last look",
        run_answers.Live,
        requests.LiveQuery,
        problems=(404, 422),
    ),
    _get("curves", "Curves of several runs", run_answers.Curves, requests.CurvesQuery, problems=(404, 422)),
    _get("nodes", "The clusters' nodes and decisions of late", nodes.NodesReport, nodes.NodesQuery),
    Operation(
        "post",
        "queues/{queue}/replay",
        "Give back what was set aside: poison messages and dead letters",
        {200: answers.GivenBack},
        query=requests.ReplayQuery,
        problems=(404,),
    ),
    _get("me", "Who calls, and what they may do", answers.Me),
    _post(
        "drops/{route}/{name}/uploads",
        "Addresses to upload a drop's files to",
        answers.Uploads,
        requests.UploadRequest,
        problems=(422,),
    ),
    _get("clusters", "The clusters with the latest decision about each", list[records.Cluster]),
    Operation(
        "post",
        "clusters/{cluster}/scale-to-zero",
        "Bring a cluster to zero unless it is needed",
        {202: answers.Scaled},
        query=requests.ScaleQuery,
        problems=(404, 409),
    ),
    _get(
        "costs",
        "What the nodes cost, and how the budgets stand",
        costs.CostReport,
        requests.CostsQuery,
        problems=(422,),
    ),
    _get("leases", "The leases that hold nodes now", list[records.Lease]),
    _post(
        "clusters/{cluster}/leases",
        "Keep nodes of a cluster warm for some time",
        {201: records.Lease},
        requests.LeaseRequest,
        problems=(404, 409, 422),
    ),
    _post(
        "leases/{lease}/extend",
        "Let a lease go on for longer",
        records.Lease,
        requests.LeaseExtension,
        problems=(404, 409, 422),
    ),
    _delete("leases/{lease}", "End a lease now", records.Lease),
]
