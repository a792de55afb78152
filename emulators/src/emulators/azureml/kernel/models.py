"""The records of the workspace: jobs, clusters and their nodes, datastores, code and environment versions. No I/O."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]
SERVERLESS = "serverless"


class Status(StrEnum):
    """The statuses of azure-ai-ml's JobStatus that this control plane uses."""

    NOT_STARTED = "NotStarted"
    QUEUED = "Queued"
    PREPARING = "Preparing"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"


# A job is Queued until its whole gang of nodes is idle, Preparing while code and data come to them, Running while its
# processes run, Finalizing while outputs and logs are uploaded. A job that loses a node returns to Queued from any
# status, and so do the jobs of a stopped control plane. A requeued job runs again from the start. A transition that is
# not in this table is illegal.
NEXT: Mapping[Status, frozenset[Status]] = {
    Status.NOT_STARTED: frozenset({Status.QUEUED, Status.CANCEL_REQUESTED}),
    Status.QUEUED: frozenset({Status.PREPARING, Status.CANCEL_REQUESTED}),
    Status.PREPARING: frozenset({Status.RUNNING, Status.FAILED, Status.QUEUED, Status.CANCEL_REQUESTED}),
    Status.RUNNING: frozenset({Status.FINALIZING, Status.FAILED, Status.QUEUED, Status.CANCEL_REQUESTED}),
    Status.FINALIZING: frozenset({Status.COMPLETED, Status.FAILED, Status.QUEUED}),
    Status.CANCEL_REQUESTED: frozenset({Status.CANCELED}),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELED: frozenset(),
}
TERMINAL = frozenset(status for status, following in NEXT.items() if not following)
ON_NODES = frozenset({Status.PREPARING, Status.RUNNING, Status.FINALIZING})


@dataclass
class Job:
    """A job: a command, a pipeline or a sweep. `properties` is its accepted REST body. Times are ISO 8601 in UTC."""

    name: str
    number: int  # of submission: the order of the queue and of lists
    properties: Json
    created: str
    status: Status = Status.NOT_STARTED
    attempt: int = 0
    started: str | None = None
    ended: str | None = None
    error: Json | None = None  # run history's shape: {"error": {"code", "message"}}
    waiting: str | None = None  # why a queued job has not started
    notice: str | None = None  # why the last attempt was stopped; heads the next attempt's log
    logs: list[str] = field(default_factory=list)  # paths of its log files, under the run's folder
    nodes: list[str] = field(default_factory=list)
    parent: str | None = None  # the pipeline of this step, or the sweep of this trial
    step: str = ""  # the step's name, or the trial's number
    # Where another job's outputs are, {"uri", "type"} by name: for a pipeline, a sweep or a reused step.
    places: dict[str, Json] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str(self.properties.get("jobType", "Command"))

    @property
    def cluster(self) -> str:
        """Return the name of the job's cluster, or '' for a parent job, which only has child jobs."""
        return compute_name(self.properties) if self.kind == "Command" else ""

    @property
    def experiment(self) -> str:
        return str(self.properties["experimentName"])


def compute_name(properties: Json) -> str:
    """Return the name of a job's cluster. A job without a cluster runs on Azure ML's serverless compute."""
    said = str(properties.get("computeId") or SERVERLESS)
    return said.rsplit("/", 1)[-1].removeprefix("azureml:").lower()


class NodeState(StrEnum):
    PREPARING = "preparing"
    IDLE = "idle"
    RUNNING = "running"
    LEAVING = "leaving"
    PREEMPTED = "preempted"


@dataclass
class Node:
    """A node of a cluster, which is only a place for a job's processes. `since` is when the node entered its state."""

    id: str
    number: int
    state: NodeState
    since: float
    job: str | None = None

    def enter(self, state: NodeState, now: float, job: str | None = None) -> None:
        self.state, self.since, self.job = state, now, job


@dataclass(frozen=True)
class Scale:
    """A cluster's limits in nodes, and the seconds after which an idle node is released."""

    minimum: int
    maximum: int
    idle_seconds: float


@dataclass
class Cluster:
    """An AmlCompute. Its nodes exist only in memory, so a restarted control plane allocates new nodes."""

    name: str
    location: str
    tags: Json
    properties: Json  # the REST body's `properties`, as accepted
    created: str
    modified: str
    nodes: list[Node] = field(default_factory=list)
    identity: Json | None = None
    errors: list[Json] = field(default_factory=list)  # why nodes are not allocated
    refused: int = 0  # the number of nodes that it requests and does not get
    settled: bool = True  # whether it has the requested number of nodes, and since when
    settled_since: str = ""

    @property
    def scale(self) -> Scale:
        settings = self.properties["properties"]["scaleSettings"]
        idle = seconds(settings.get("nodeIdleTimeBeforeScaleDown") or "PT120S")
        return Scale(settings.get("minNodeCount") or 0, settings["maxNodeCount"], idle)

    @property
    def low_priority(self) -> bool:
        return bool(self.properties["properties"].get("vmPriority") == "LowPriority")


@dataclass
class Datastore:
    """An AzureBlob datastore: a name for a container of the storage account."""

    name: str
    container: str
    is_default: bool = False
    description: str | None = None
    tags: Json = field(default_factory=dict)
    properties: Json = field(default_factory=dict)


@dataclass
class Asset:
    """A version of an asset. `kind` is the ARM collection, for example `codes` or `environments`."""

    kind: str
    name: str
    version: str
    properties: Json
    created: str
    made: int = 0  # its position in the order of creation

    @property
    def archived(self) -> bool:
        return bool(self.properties.get("isArchived"))

    @property
    def key(self) -> str:
        return asset_key(self.kind, self.name, self.version)


@dataclass
class Shelf:
    """A name that has versions of an asset. Azure ML calls it a container."""

    kind: str
    name: str
    properties: Json
    created: str

    @property
    def archived(self) -> bool:
        return bool(self.properties.get("isArchived"))


def asset_key(kind: str, name: str, version: str) -> str:
    return f"{kind}/{name}/{version}"


DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def seconds(duration: str) -> float:
    """Return the seconds of an ISO 8601 duration with days, hours, minutes and seconds. Raises ValueError for any
    other text."""
    match = DURATION.fullmatch(duration)
    if not match or not any(match.groups()):
        raise ValueError(f"{duration!r} is not an ISO 8601 duration such as PT120S or PT1H30M")
    days, hours, minutes, rest = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + rest


def timestamp() -> str:
    """Return the current time in UTC, in Azure Resource Manager's format."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
