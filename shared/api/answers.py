"""What the HTTP API answers: as models, for its OpenAPI document, and made from records. Requests are in requests.py.

The models of drops, runs, clusters and decisions come from their records' declarations: a new field of a record is a
field of the answer, unless it is left out here. Times are ISO 8601 in UTC. Tests hold every real answer against the
models.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta, Struct

from shared.api.source import git
from shared.clusters import leases
from shared.clusters import model as clusters
from shared.clusters import waiting as waits
from shared.drops import model as drops
from shared.runs import model as runs
from shared.runs import summary
from shared.runs.model import RunState, member_job

Json = dict[str, Any]


class Problem(Struct):
    """An error (RFC 9457). `code` is stable; `detail` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class RouteReport(Struct):
    route: str
    cluster: str
    problem: Annotated[str, Meta(description="What would stop its jobs; empty for nothing.")]


class Registered(Struct):
    """What every job needs, by its ids in Azure ML, and how the routes stand."""

    code: str
    environment: str
    routes: list[RouteReport]


class Trainer(Struct):
    trainer: str
    description: str
    elastic: bool
    routes: list[str]
    parameters: Annotated[dict[str, Any], Meta(description="A JSON Schema; parameters that are not named in it fail.")]


class Route(Struct):
    route: str
    trainer: str
    description: str
    elastic: bool
    cluster: str
    clusters: list[str]
    nodes: int
    min_nodes: Annotated[int, Meta(description="The fewest nodes of an elastic route, 0 for another.")]
    max_nodes: int
    timeout_seconds: float
    vm_size: Annotated[str, Meta(description="Empty where the routes file does not say it.")]
    processes: Annotated[int, Meta(description="On each node, one for each GPU; 0 where the job's template says it.")]
    experiment: str
    job_files: Annotated[bool, Meta(description="Whether a drop may bring a job file.")]
    parameters: Annotated[dict[str, Any], Meta(description="A JSON Schema of what a job file's inputs may set.")]


class Found(Struct):
    run: Annotated[str, Meta(description="Empty for a drop that made none yet.")]
    drop: Annotated[str, Meta(description="Empty where the name is a run's.")]


class Difference(Struct):
    name: str
    values: Annotated[list[Any], Meta(description="One a run, in their order; null where it has none.")]


class ComparedMetric(Struct):
    name: str
    values: list[float | None]
    best: Annotated[int | None, Meta(description="Which run has the best of them; null if all are the same.")]


class Best(Struct):
    metric: str
    value: float


class CheckedRoute(Struct):
    route: str
    job: Annotated[dict[str, Any], Meta(description="The job of such a drop, but for its name and data.")]


class Check(Struct):
    ok: bool
    detail: str


class Health(Struct):
    status: str
    checks: dict[str, Check]


class Accepted(Struct):
    run: str
    state: RunState
    estimated_cost: Annotated[float | None, Meta(description="Dollars; null where nothing is known.")] = None
    greatest_cost: Annotated[float | None, Meta(description="Dollars; null where no price is known.")] = None


class Reason(Struct):
    code: str
    message: str


class Finding(Struct):
    """What became of a field of a Batch AI document. `lossy`: the job does not do all that was asked for."""

    field: str
    meant: str
    instead: str
    decide: str
    lossy: bool


class Costs(Struct):
    """What a run may cost, in dollars, before it starts. `price` is an hour of one node; null where none is known."""

    project: str
    estimated: Annotated[float | None, Meta(description="As the newest runs of its kind; null if there are none.")]
    greatest: Annotated[
        float | None, Meta(description="If it takes all of its time limit, with starts and idle nodes.")
    ]
    price: float | None
    price_from: str


class DryRun(Struct):
    """`report` is of a Batch AI document, empty for any other job."""

    job: dict[str, Any]
    reasons: list[Reason]
    cost: Costs
    report: list[Finding] = []


class Imported(Struct):
    """What a Batch AI document becomes: a job, a compute, or for a project what the command line needs of it."""

    kind: str
    job: dict[str, Any] | None = None
    compute: dict[str, Any] | None = None
    project: dict[str, Any] | None = None
    report: list[Finding] = []
    reasons: list[Reason] = []


class Moment(Struct):
    state: RunState
    at: datetime
    why: str


class Metrics(Struct):
    last: dict[str, float]
    best: dict[str, float]


class Note(Struct):
    text: str
    by: Annotated[str, Meta(description="Who wrote it; empty where nobody said it.")]
    at: datetime


class Member(Struct):
    member: int
    job: str
    attempt: int
    state: RunState
    at: datetime
    why: str


class Size(Struct):
    at: datetime
    nodes: int


class Elastic(Struct):
    min_nodes: int
    resubmitted: int
    resubmissions: int
    deadline: datetime
    members: list[Member]
    sizes: Annotated[list[Size], Meta(description="How many members were running, from when on.")]


class Git(Struct):
    """Where the job's code came from, as whoever submitted it says."""

    commit: str
    dirty: Annotated[bool, Meta(description="Whether files were changed since that commit.")]
    branch: str
    repository: str


class Cost(Struct):
    """What a run's nodes have cost until `at`, in dollars. `unpriced`: for some node seconds no price is known."""

    training: float
    allocation: float
    idle: float
    node_seconds: float
    at: datetime
    unpriced: bool


_Types = dict[str, Any]


def _model(record: type[Any], also: _Types, skip: tuple[str, ...] = ()) -> Any:
    """A model with the fields of a record but for those that are skipped, and further ones."""
    known = {f.name: get_type_hints(record)[f.name] for f in fields(record) if f.name not in skip}
    return msgspec.defstruct(record.__name__, [*(known | also).items()], module=__name__)


_RUN_SKIPS = ("name", "request", "asked", "last_metrics", "best_metrics", "archive_tries")
_DROP_SKIPS = ("key", "token", "request", "newest", "looked_at", "listed")
_SUMMARY: _Types = {
    "best": Annotated[Best | None, Meta(description="The metric that tells most, and its best value.")],
    "duration_seconds": Annotated[float | None, Meta(description="From its first node's start; null before that.")],
    "cause": Annotated[str, Meta(description="Why it failed or was canceled, in one sentence.")],
}
_Git = Annotated[Git | None, Meta(description="Null where nobody said it.")]
_Elastic = Annotated[Elastic | None, Meta(description="Null for a run that is one job.")]

Waiting = _model(waits.Waiting, {})
_Waiting: Any = Annotated[Waiting | None, Meta(description="Why it has not started; null once it has.")]
Run = _model(
    runs.Run,
    {
        "run": str,
        "waiting": _Waiting,
        "elastic": _Elastic,
        "history": list[Moment],
        "notes": list[Note],
        "metrics": Metrics,
        **_SUMMARY,
        "cost": Cost | None,
        "git": _Git,
    },
    _RUN_SKIPS,
)
Drop = _model(drops.Drop, {"drop": str}, _DROP_SKIPS)
Decision = _model(clusters.Decision, {}, ("cluster",))
Cluster = _model(clusters.Cluster, {"decision": Decision | None})
Lease = _model(leases.Lease, {"lease": str, "active": bool}, ("id",))


class Compared(Struct):
    runs: list[Run]  # type: ignore[valid-type]
    different: Annotated[list[Difference], Meta(description="What is not the same in all of them.")]
    metrics: Annotated[list[ComparedMetric], Meta(description="The best value of each metric in each run.")]


class ToSend(Struct):
    name: str
    url: Annotated[str, Meta(description="PUT the file here, with x-ms-blob-type: BlockBlob and its Content-MD5.")]


class Folder(Struct):
    """Which files of a folder are still to be sent. None: all of them are there."""

    path: Annotated[str, Meta(description="What a job writes as its code, or as the path of an input.")]
    digest: str
    seconds: Annotated[float, Meta(description="How long the addresses work.")]
    files: list[ToSend]


class RunPage(Struct):
    runs: list[Run]  # type: ignore[valid-type]  # made from the record
    token: Annotated[str | None, Meta(description="Ask with it for the next page; null after the last.")] = (
        msgspec.field(name="continue")
    )
    looked_at: Annotated[int, Meta(ge=0, description="Among how many runs these were found; with a filter or `where`.")]


class Series(Struct):
    series: Annotated[
        dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]],
        Meta(description="Points of each metric: step, value, Unix time or null. At most 2,000 of each."),
    ]


class NewPoints(Struct):
    series: dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]]
    next: Annotated[str, Meta(description="Ask with it as `after` for what comes next.")]


class NewLog(Struct):
    text: str
    offset: int
    next_offset: int
    size: int
    complete: bool
    ranks: list[int]


class Live(Struct):
    run: Run  # type: ignore[valid-type]
    metrics: NewPoints
    log: NewLog | None


class Curves(Struct):
    runs: Annotated[
        dict[str, dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]]],
        Meta(description="Points of each metric of each run: step, value, Unix time or null."),
    ]
    records: list[Run]  # type: ignore[valid-type]


class Link(Struct):
    url: str
    seconds: int


class UploadTarget(Struct):
    name: str
    url: Annotated[str | None, Meta(description="Where to PUT the file; null if it is there already.")]


class Uploads(Struct):
    drop: str
    files: list[UploadTarget]
    seconds: Annotated[int, Meta(description="How long the addresses work.")]


class Me(Struct):
    auth: Annotated[str, Meta(description="keys or entra")]
    name: Annotated[str, Meta(description="Who calls, as Entra ID names them; empty with keys.")]
    may_change: Annotated[bool, Meta(description="Whether this caller may do more than look.")]


class CostLine(Struct):
    """Dollars by what they paid for. What no run, project or owner explains has the key ''."""

    key: str
    spent: float
    training: float
    allocation: float
    idle: float
    lease: float
    unexplained: float
    idle_share: Annotated[float, Meta(description="The part that neither training nor starting got.")]
    node_hours: float
    unpriced_hours: Annotated[float, Meta(description="Node hours whose price is unknown; not in the dollars.")]
    saved_always_on: Annotated[
        float | None, Meta(description="Against the most nodes that there were, kept up all the time; of clusters.")
    ]
    saved_default: Annotated[float | None, Meta(description="Against Azure ML's default idle time; of clusters.")]


class CostDay(Struct):
    day: str
    training: float
    allocation: float
    idle: float
    lease: float
    unexplained: float


class BudgetState(Struct):
    """A project's budget. `kept_back` is what its runs that go on may still cost."""

    project: str
    month: float | None
    run: float | None
    spent: float
    kept_back: float
    reached_at: datetime | None


class CostReport(Struct):
    since: datetime
    until: datetime
    by: str
    total: CostLine
    lines: list[CostLine]
    days: list[CostDay]
    standing: Annotated[dict[str, float], Meta(description="What costs without any node, for the same time.")]
    budgets: list[BudgetState]


class GivenBack(Struct):
    queue: str
    messages: int


class Artifact(Struct):
    name: str
    size: int
    md5: str
    etag: str


class Output(Struct, omit_defaults=True):
    """What became of an output that the job declared: archived, empty, left where it is, or missing."""

    name: str
    state: str
    path: str
    why: str = ""
    folder: str = ""
    files: int = 0
    asset: Annotated[str, Meta(description="The name, or name:version, under which it is registered.")] = ""


class Artifacts(Struct):
    complete: bool
    files: list[Artifact]
    outputs: list[Output]
    pictures: Annotated[dict[str, str], Meta(description="Addresses of the first pictures by name, if asked for.")]


class Evicted(Struct):
    run: str
    job: str


class Scaled(Struct):
    cluster: str
    action: str
    why: str


class Queue(Struct):
    messages: int
    poison: int


class Status(Struct):
    checks: dict[str, str]
    queues: dict[str, Queue]
    poison: dict[str, list[str]]
    drops: list[Drop]  # type: ignore[valid-type]
    runs: list[Run]  # type: ignore[valid-type]
    clusters: list[Cluster]  # type: ignore[valid-type]


# --- made from records -----------------------------------------------------------------------------------------------


def drop(record: drops.Drop) -> Json:
    return {"drop": str(record.key), **_plain_fields(record, _DROP_SKIPS)}


def run(record: runs.Run, waiting: waits.Waiting | None = None) -> Json:
    return {
        "run": record.name,
        "waiting": waiting and _plain_fields(waiting),
        **_plain_fields(record, (*_RUN_SKIPS, "elastic", "history", "notes", "cost")),
        "elastic": record.elastic and _elastic(record, record.elastic),
        "cost": record.cost and {f: _plain(getattr(record.cost, f)) for f in record.cost.__struct_fields__},
        "metrics": {"last": record.last_metrics, "best": record.best_metrics},
        **_summary(record),
        "git": git(record.request),
        "notes": [{"text": n.text, "by": n.by, "at": _plain(n.at)} for n in record.notes],
        "history": [{"state": m.state, "at": _plain(m.at), "why": m.why} for m in record.history],
    }


def _summary(record: runs.Run) -> Json:
    best = summary.best_metric(record)
    return {
        "best": best and {"metric": best[0], "value": best[1]},
        "duration_seconds": summary.duration_seconds(record, datetime.now(UTC)),
        "cause": summary.cause(record),
    }


def _elastic(record: runs.Run, elastic: runs.Elastic) -> Json:
    members = [
        {
            "member": m.index,
            "job": member_job(record.name, m.index, m.attempt),
            "attempt": m.attempt,
            "state": m.state,
            "at": _plain(m.at),
            "why": m.why,
        }
        for m in elastic.members
    ]
    return {
        **_plain_fields(elastic, ("members", "sizes")),
        "resubmitted": elastic.resubmitted,
        "members": members,
        "sizes": [{"at": _plain(size.at), "nodes": size.nodes} for size in elastic.sizes],
    }


def cluster(record: clusters.Cluster, latest: clusters.Decision | None) -> Json:
    return {**_plain_fields(record), "decision": latest and decision(latest)}


def decision(record: clusters.Decision) -> Json:
    return _plain_fields(record, ("cluster",))


def lease(record: leases.Lease, now: datetime) -> Json:
    return {"lease": record.id, **_plain_fields(record, ("id",)), "active": record.holds(now)}


def _plain_fields(record: Any, skip: tuple[str, ...] = ()) -> Json:
    return {f.name: _plain(getattr(record, f.name)) for f in fields(record) if f.name not in skip}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, StrEnum) else value
