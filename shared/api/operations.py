"""Every method of every path of the HTTP API: its question, its answers, and what can go wrong. Declarations alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from shared.api import answers, costs, data, nodes, notices, records, removals, requests, rows, run_answers, schedules
from shared.runs.request import RunRequest

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

OPERATIONS = [
    Operation("get", "health", "Whether storage and workspace answer", {200: answers.Health, 503: answers.Health}),
    Operation("get", "status", "Queues, poison messages, open drops, newest runs, clusters", {200: answers.Status}),
    Operation("get", "openapi.json", "This document", {200: Json}),
    Operation(
        "get",
        "find",
        "The run or drop that a name means",
        {200: answers.Found},
        requests.FindQuery,
        problems=(404, 409, 422),
    ),
    Operation(
        "get",
        "compare",
        "What is different between runs",
        {200: run_answers.Compared},
        requests.CompareQuery,
        problems=(404, 409, 422),
    ),
    Operation("get", "trainers", "The trainers, each with its parameters", {200: list[answers.Trainer]}),
    Operation("get", "routes", "The routes, each with its limits and parameters", {200: list[answers.Route]}),
    Operation(
        "post",
        "routes/{route}/check",
        "What a drop with this job file would become",
        {200: answers.CheckedRoute},
        body=requests.RouteCheck,
        problems=(404, 422),
    ),
    Operation("post", "register", "Register the trainers' assets, and check the routes", {200: answers.Registered}),
    Operation("get", "drops", "The drops by name", {200: list[records.Drop]}, requests.DropsQuery),
    Operation(
        "get", "drops/{route}/{name}", "One drop, and why it did not start", {200: records.Drop}, problems=(404,)
    ),
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
        {202: run_answers.Accepted},
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
        {200: answers.Folder},
        body=requests.FolderRequest,
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
    Operation(
        "get", "runs", "A page of runs, newest first", {200: run_answers.RunPage}, requests.RunsQuery, problems=(422,)
    ),
    Operation(
        "post",
        "runs",
        "Make a run, or say what would be made",
        {200: run_answers.DryRun, 202: run_answers.Accepted},
        requests.CreateQuery,
        RunRequest,
        _KEY,
        (404, 409, 422),
    ),
    Operation(
        "post",
        "imports",
        "What a Batch AI document becomes; makes nothing",
        {200: run_answers.Imported},
        body=requests.ImportRequest,
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
    Operation("get", "runs/{run}", "One run with its history", {200: records.Run}, problems=(404,)),
    Operation(
        "delete",
        "runs/{run}",
        "The same as cancel",
        {200: run_answers.Accepted, 202: run_answers.Accepted},
        problems=(404,),
    ),
    Operation(
        "post",
        "runs/{run}/cancel",
        "Ask for the run's end; 200 if it has ended",
        {200: run_answers.Accepted, 202: run_answers.Accepted},
        problems=(404,),
    ),
    Operation(
        "post",
        "runs/{run}/retry",
        "A new run with this one's job",
        {202: run_answers.Accepted},
        body=requests.Changes,
        problems=(404, 409, 422),
    ),
    Operation(
        "post",
        "runs/{run}/continue",
        "A new run that goes on from this one's checkpoint",
        {202: run_answers.Accepted},
        body=requests.Changes,
        problems=(404, 409, 422),
    ),
    Operation(
        "post",
        "runs/{run}/notes",
        "Write a note on the run",
        {200: records.Run},
        body=requests.NoteRequest,
        problems=(404, 422),
    ),
    Operation(
        "post",
        "runs/{run}/tags",
        "Change the run's tags",
        {200: records.Run},
        body=requests.TagsRequest,
        problems=(404, 422),
    ),
    Operation(
        "post",
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
        requests.LogQuery,
        headers=_RANGE,
        problems=(404, 416),
    ),
    Operation(
        "get",
        "runs/{run}/metrics",
        "The run's metrics as series",
        {200: run_answers.Series},
        requests.MetricsQuery,
        problems=(404,),
    ),
    Operation(
        "get",
        "runs/{run}/artifacts",
        "The files of the run's archive",
        {200: run_answers.Artifacts},
        requests.ArtifactsQuery,
        problems=(404,),
    ),
    Operation(
        "get",
        "runs/{run}/artifacts/{path}",
        "A redirect to a short-lived address; `link`: the address",
        {200: answers.Link, 302: None},
        requests.ArtifactQuery,
        problems=(404,),
    ),
    Operation(
        "get",
        "runs/{run}/live",
        "The run and what is new since the last look",
        {200: run_answers.Live},
        requests.LiveQuery,
        problems=(404, 422),
    ),
    Operation(
        "get", "curves", "Curves of several runs", {200: run_answers.Curves}, requests.CurvesQuery, problems=(404, 422)
    ),
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
        {200: answers.GivenBack},
        problems=(404,),
    ),
    Operation("get", "me", "Who calls, and what they may do", {200: answers.Me}),
    Operation(
        "post",
        "drops/{route}/{name}/uploads",
        "Addresses to upload a drop's files to",
        {200: answers.Uploads},
        body=requests.UploadRequest,
        problems=(422,),
    ),
    Operation("get", "clusters", "The clusters with the latest decision about each", {200: list[records.Cluster]}),
    Operation(
        "post",
        "clusters/{cluster}/scale-to-zero",
        "Bring a cluster to zero unless it is needed",
        {202: answers.Scaled},
        requests.ScaleQuery,
        problems=(404, 409),
    ),
    Operation(
        "get",
        "costs",
        "What the nodes cost, and how the budgets stand",
        {200: costs.CostReport},
        requests.CostsQuery,
        problems=(422,),
    ),
    Operation("get", "leases", "The leases that hold nodes now", {200: list[records.Lease]}),
    Operation(
        "post",
        "clusters/{cluster}/leases",
        "Keep nodes of a cluster warm for some time",
        {201: records.Lease},
        body=requests.LeaseRequest,
        problems=(404, 409, 422),
    ),
    Operation(
        "post",
        "leases/{lease}/extend",
        "Let a lease go on for longer",
        {200: records.Lease},
        body=requests.LeaseExtension,
        problems=(404, 409, 422),
    ),
    Operation("delete", "leases/{lease}", "End a lease now", {200: records.Lease}, problems=(404,)),
]
