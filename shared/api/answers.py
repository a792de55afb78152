"""Answers of the HTTP API about no single noun: problems, health, uploads, overall status. Requests are in requests.py,
records in records.py, and other answers beside their functions.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.api.records import ClusterAnswer, DropAnswer, RunAnswer


class ProblemDetails(Struct):
    """An error in the format of RFC 9457. `code` is stable; `detail` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Trainer(Struct):
    trainer: str
    description: str
    elastic: bool
    routes: list[str]
    parameters: Annotated[dict[str, Any], Meta(description="A JSON Schema; parameters that are not named in it fail.")]


class RouteAnswer(Struct):
    route: str
    trains: Annotated[bool, Meta(description="Whether its drops become runs; else they are data for jobs.")]
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


class CheckedRoute(Struct):
    route: str
    trains: bool
    job: Annotated[dict[str, Any], Meta(description="The job of such a drop, but for its name and data.")]
    data: Annotated[
        dict[str, Any],
        Meta(
            description="How the data of such a drop is checked: `mode`, `declared`, `bounds`. With files, the answer "
            "also has `verdict`, `refusals`, `warnings`, `notes` and `card`."
        ),
    ] = {}


class Check(Struct):
    ok: bool
    detail: str


class Health(Struct):
    status: str
    checks: dict[str, Check]


class ToSend(Struct):
    name: str
    url: Annotated[str, Meta(description="PUT the file here, with x-ms-blob-type: BlockBlob and its Content-MD5.")]


class Folder(Struct):
    """The files of a folder that are still to be uploaded. None: every file is stored."""

    path: Annotated[str, Meta(description="What a job writes as its code, or as the path of an input.")]
    digest: str
    seconds: Annotated[float, Meta(description="How long the addresses are valid.")]
    files: list[ToSend]


class UploadTarget(Struct):
    name: str
    url: Annotated[str | None, Meta(description="Where to PUT the file; null if it is there already.")]


class Uploads(Struct):
    drop: str
    files: list[UploadTarget]
    headers: Annotated[
        dict[str, str],
        Meta(description="Headers for the PUT of each file. They name the drop's owner if the caller is known."),
    ]
    seconds: Annotated[int, Meta(description="How long the addresses are valid.")]


class Me(Struct):
    auth: Annotated[str, Meta(description="keys or entra")]
    name: Annotated[str, Meta(description="Name of the caller in Entra ID; empty with keys.")]
    id: Annotated[str, Meta(description="Object id of this person in Entra ID; empty with keys.")]
    may_change: Annotated[bool, Meta(description="Whether this caller may do more than read.")]


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
    drops: list[DropAnswer]
    runs: list[RunAnswer]
    clusters: list[ClusterAnswer]
