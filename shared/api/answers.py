"""What the HTTP API answers, as models, for its OpenAPI document. Requests are in requests.py.

The answers themselves are made by rows.py and the services; tests hold every real answer against these models.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from shared.drops.model import DropState
from shared.runs.model import RunState


class Problem(Struct):
    """An error (RFC 9457). `code` is stable; `detail` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Check(Struct):
    ok: bool
    detail: str


class Health(Struct):
    status: str
    checks: dict[str, Check]


class Accepted(Struct):
    run: str
    state: RunState


class Reason(Struct):
    code: str
    message: str


class DryRun(Struct):
    job: dict[str, Any]
    reasons: list[Reason]


class Moment(Struct):
    state: RunState
    at: datetime
    why: str


class Metrics(Struct):
    last: dict[str, float]
    best: dict[str, float]


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


class Run(Struct):
    run: str
    state: RunState
    drop: str
    route: str
    fingerprint: str
    experiment: str
    cluster: str
    nodes: int
    attempts: int
    reason: str
    job: str
    code: str
    environment: str
    created_at: datetime
    archived_at: datetime | None
    cancel_asked_at: datetime | None
    retry_of: str
    elastic: Annotated[Elastic | None, Meta(description="Null for a run that is one job.")]
    output: str
    metrics: Metrics
    history: list[Moment]


class RunPage(Struct):
    runs: list[Run]
    token: Annotated[str | None, Meta(description="Ask with it for the next page; null after the last.")] = (
        msgspec.field(name="continue")
    )


class Series(Struct):
    series: Annotated[
        dict[str, list[Annotated[list[float | None], Meta(min_length=3, max_length=3)]]],
        Meta(description="Points of each metric: step, value, Unix time or null. At most 2,000 of each."),
    ]


class Artifact(Struct):
    name: str
    size: int
    md5: str
    etag: str


class Artifacts(Struct):
    complete: bool
    files: list[Artifact]


class Drop(Struct):
    drop: str
    state: DropState
    code: str
    why: str
    generation: int
    run: str
    fingerprint: str
    blobs: int
    bytes: int
    opened_at: datetime
    sealed_at: datetime | None


class Decision(Struct):
    action: str
    code: str
    why: str
    at: datetime
    idle_since: datetime | None


class Cluster(Struct):
    name: str
    nodes: int
    busy_nodes: int
    min_nodes: int
    max_nodes: int
    idle_seconds: float
    tier: str
    vm_size: str
    decision: Decision | None


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
    drops: list[Drop]
    runs: list[Run]
    clusters: list[Cluster]
