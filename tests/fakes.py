"""The ports in memory: plain state machines without threads, sleep or randomness, one a Protocol of shared/ports.py.

They pass the contract suites of tests/contract, which the adapters pass on Azurite and the local Azure ML. What a fake
has beyond its port (take, put, set, ...) plays the other side: the uploader, the queue's host, Azure ML.

`Crashing` stands before any of them and ends a call where a schedule says so, as a killed process would.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from shared.errors import BadInput, Changed, NotFound, Unavailable
from shared.model import (
    FINAL,
    Blob,
    Cluster,
    Decision,
    Drop,
    DropKey,
    DropState,
    JobStatus,
    Problem,
    Run,
    RunState,
    Stored,
)
from shared.ports import Copy, Place

P = TypeVar("P")


class Clock:
    """A clock that moves only by `advance`. Calling it gives the time."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


# --- crashes ---------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process died here. No handler of the app's may catch it, so it is no Exception."""


class Crashing(Generic[P]):
    """`target`, where each call takes one word from `schedule` and may end in Crash:

    "before"  the call has no effect
    "half"    a call of several writes dies before its last one, an iterator after its first item; else "before"
    "after"   the call takes effect in full, but its answer is lost
    anything else, or the schedule's end: the call is made as usual.

    Several wrappers may share one iterator; then it counts the calls of all of them.
    """

    def __init__(self, target: P, schedule: Iterable[str]) -> None:
        self.target = target
        self._schedule = iter(schedule)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)
        return self._wrapped(name, method) if callable(method) else method

    def _wrapped(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            when = next(self._schedule, "")
            if when == "half" and (half := getattr(self.target, f"half_{name}", None)):
                half(*args, **kwargs)
                raise Crash(f"half-way through {name}")
            if when == "before" or (when == "half" and not inspect.isgeneratorfunction(method)):
                raise Crash(f"before {name}")
            result = method(*args, **kwargs)
            if inspect.isgenerator(result) and when in ("half", "after"):
                return _cut(result, name, 1 if when == "half" else None)
            if when == "after":
                raise Crash(f"after {name}")
            return result

        return call


def _cut(items: Iterator[Any], name: str, count: int | None) -> Iterator[Any]:
    yield from itertools.islice(items, count)
    raise Crash(f"in {name}")


# --- records ---------------------------------------------------------------------------------------------------------


class _Etags:
    """A new etag at every write, as the services give."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"0x{next(self._numbers):X}"


_UNFINISHED = (DropState.OPEN, DropState.SEALING)


class FakeDrops:
    def __init__(self) -> None:
        self.rows: dict[DropKey, Stored[Drop]] = {}
        self._etags = _Etags()

    def get(self, key: DropKey) -> Stored[Drop] | None:
        return self.rows.get(key)

    def insert(self, drop: Drop) -> Stored[Drop]:
        if drop.key in self.rows:
            raise Changed(f"drop {drop.key} is there already")
        return self._put(drop)

    def replace(self, drop: Drop, etag: str) -> Stored[Drop]:
        row = self.rows.get(drop.key)
        if row is None or row.etag != etag:
            raise Changed(f"drop {drop.key} changed in between")
        return self._put(drop)

    def delete(self, key: DropKey, etag: str) -> None:
        row = self.rows.get(key)
        if row is not None and row.etag != etag:
            raise Changed(f"drop {key} changed in between")
        self.rows.pop(key, None)

    def open(self) -> Iterator[Drop]:
        yield from [row.value for row in self.rows.values() if row.value.state in _UNFINISHED]

    def listed(self, route: str | None = None) -> Iterator[Drop]:
        yield from [self.rows[key].value for key in sorted(self.rows) if route in (None, key.route)]

    def _put(self, drop: Drop) -> Stored[Drop]:
        self.rows[drop.key] = Stored(drop, self._etags.next())
        return self.rows[drop.key]


class FakeRuns:
    """`half_insert` is the worst that the port allows: an insert that died between its writes."""

    def __init__(self) -> None:
        self.names: dict[str, datetime] = {}
        self.rows: dict[str, Stored[Run]] = {}
        self.unsettled_names: set[str] = set()
        self._etags = _Etags()

    def insert(self, run: Run) -> bool:
        new = self.half_insert(run)
        if run.name not in self.rows:
            self._put(replace(run, created_at=self.names[run.name]))
        return new

    def half_insert(self, run: Run) -> bool:
        """What a call leaves that dies before its last write."""
        if run.name in self.names:
            return False
        self.unsettled_names.add(run.name)
        self.names[run.name] = run.created_at
        return True

    def get(self, name: str) -> Stored[Run]:
        if name not in self.rows:
            raise NotFound(f"there is no run {name!r}")
        return self.rows[name]

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        row = self.rows.get(run.value.name)
        if row is None or row.etag != run.etag:
            raise Changed(f"run {run.value.name} changed in between")
        return self._put(replace(row.value, **changes))

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        runs = sorted((row.value for row in self.rows.values()), key=_age)
        return [run for run in runs if before is None or _age(run) > _age(before)][:limit]

    def unsettled(self) -> Iterator[str]:
        yield from sorted(self.unsettled_names)

    def settle(self, name: str) -> None:
        self.unsettled_names.discard(name)

    def _put(self, run: Run) -> Stored[Run]:
        self.rows[run.name] = Stored(run, self._etags.next())
        return self.rows[run.name]


def _age(run: Run) -> tuple[int, str]:
    return -((run.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)), run.name


class FakeSweepLog:
    def __init__(self) -> None:
        self._latest: dict[str, Decision] = {}
        self._history: dict[str, list[Decision]] = defaultdict(list)

    def record(self, decision: Decision) -> None:
        last = self._latest.get(decision.cluster)
        if last is None or (last.action, last.code) != (decision.action, decision.code):
            self._history[decision.cluster].insert(0, decision)
        self._latest[decision.cluster] = decision

    def latest(self, cluster: str) -> Decision | None:
        return self._latest.get(cluster)

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        return self._history[cluster][:limit]


class FakeAssets:
    """What shared/adapters/tables.py TableAssets is to the Azure ML adapter."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def get(self, kind: str, digest: str) -> str | None:
        return self._ids.get((kind, digest))

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        self._ids[(kind, digest)] = asset_id


# --- queues ----------------------------------------------------------------------------------------------------------


@dataclass
class Message:
    text: str
    visible_at: datetime

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class FakeQueues:
    """`take` is the host's side: it removes a message that is visible at the clock's time, or returns None."""

    LONGEST_DELAY = 7 * 86400.0
    MOST_PEEKED = 32

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock or Clock()
        self.messages: dict[str, list[Message]] = {}

    def send(self, queue: str, message: dict[str, Any], delay: float = 0.0) -> None:
        visible_at = self.clock() + timedelta(seconds=min(max(delay, 0.0), self.LONGEST_DELAY))
        self.messages.setdefault(queue, []).append(Message(json.dumps(message), visible_at))

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        return {queue: len(self.messages.get(queue, [])) for queue in queues}

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        return [message.text for message in self.visible(queue)[: min(limit, self.MOST_PEEKED)]]

    def visible(self, queue: str) -> list[Message]:
        return [message for message in self.messages.get(queue, []) if message.visible_at <= self.clock()]

    def take(self, queue: str, index: int = 0) -> Message | None:
        """Remove and return a visible message: the first one, or the `index`-th (modulo their number)."""
        if not (visible := self.visible(queue)):
            return None
        message = visible[index % len(visible)]
        self.messages[queue].remove(message)
        return message

    def next_visible_at(self) -> datetime | None:
        """When the first message of any queue is or becomes visible; None if all queues are empty."""
        return min((m.visible_at for messages in self.messages.values() for m in messages), default=None)


# --- blobs -----------------------------------------------------------------------------------------------------------


@dataclass
class _Content:
    blob: Blob
    data: bytes


class FakeBlobs:
    """`containers` maps container and name to blob and bytes. `put` and `delete` are the uploader's side."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock or Clock()
        self.containers: dict[str, dict[str, _Content]] = {}
        self.copied: list[str] = []  # the destinations of the copies that were really made
        self._etags = _Etags()

    def put(self, container: str, name: str, data: bytes = b"", md5: bool = True) -> Blob:
        """Upload. Without `md5` the service knows none, as for a blob of several blocks."""
        return self._put(container, name, data, md5=hashlib.md5(data).hexdigest() if md5 else "")

    def delete(self, container: str, name: str) -> None:
        self.containers.get(container, {}).pop(name, None)

    def list(self, place: Place) -> Iterator[Blob]:
        for _, content in sorted(self.containers.get(place.container, {}).items()):
            if content.blob.name.startswith(place.prefix):
                yield content.blob

    def folders(self, place: Place) -> Iterator[str]:
        names = (blob.name[len(place.prefix) :] for blob in self.list(place))
        yield from sorted({name.split("/", 1)[0] for name in names})

    def read(self, container: str, name: str, limit: int) -> bytes:
        if (content := self._get(container, name)) is None:
            raise NotFound(f"there is no blob {container}/{name}")
        if len(content.data) > limit:
            raise BadInput(f"{container}/{name} has {len(content.data)} bytes, the limit is {limit}")
        return content.data

    def lines(self, container: str, name: str) -> Iterator[str]:
        if content := self._get(container, name):
            text = content.data.decode("utf-8", "replace")
            yield from (line.removesuffix("\r") for line in text.removesuffix("\n").split("\n") if text)

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        content = self._get(container, name)
        return content.data[offset : offset + limit] if content else b""

    def tail(self, container: str, name: str, size: int) -> str:
        content = self._get(container, name)
        return content.data[-size:].decode("utf-8", "replace") if content and size > 0 else ""

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        return self.put(container, name, data)

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        for copy in copies:
            there = self._get(copy.to_container, copy.to_name)
            if there and there.blob.metadata.get("source_etag") == copy.source.etag:
                yield there.blob
            else:
                yield self._copied(copy)

    def check(self) -> None:
        pass

    def _copied(self, copy: Copy) -> Blob:
        if (source := self._get(copy.container, copy.source.name)) is None:
            raise NotFound(f"{copy.container}/{copy.source.name} is gone; it can't be copied")
        if source.blob.etag != copy.source.etag:
            raise Changed(f"{copy.container}/{copy.source.name} changed in between")
        self.copied.append(f"{copy.to_container}/{copy.to_name}")
        metadata = {"source_etag": copy.source.etag}
        return self._put(copy.to_container, copy.to_name, source.data, source.blob.md5, metadata)

    def _get(self, container: str, name: str) -> _Content | None:
        return self.containers.get(container, {}).get(name)

    def _put(self, container: str, name: str, data: bytes, md5: str, metadata: dict[str, str] | None = None) -> Blob:
        blob = Blob(name, self._etags.next(), len(data), md5, self.clock(), metadata or {})
        self.containers.setdefault(container, {})[name] = _Content(blob, data)
        return blob


# --- Azure ML --------------------------------------------------------------------------------------------------------

_RAW_STATES = {
    "Queued": RunState.QUEUED,
    "Running": RunState.RUNNING,
    "Completed": RunState.COMPLETED,
    "Failed": RunState.FAILED,
    "Canceled": RunState.CANCELED,
}


@dataclass
class _Job:
    spec: dict[str, Any]
    raw: str = "Queued"
    error: str = ""


class FakeJobs:
    """`jobs` in order of submission; `set` is Azure ML's side. A compute that isn't among `clusters` is refused."""

    def __init__(self, clusters: Iterable[str] = ("cpu-cluster",), datastores: dict[str, str] | None = None) -> None:
        self.jobs: dict[str, _Job] = {}
        self.clusters = set(clusters)
        self.datastores = {"workspaceblobstore": "azureml-blobstore", "drops": "drops", **(datastores or {})}
        self.submissions: list[str] = []  # every call of submit, those that found the job there too
        self.assets: dict[tuple[str, str], str] = {}
        self.down = False

    def set(self, name: str, raw: str, error: str = "") -> None:
        """Put the job into one of the states Queued, Running, Completed, Failed, Canceled."""
        self.jobs[name].raw, self.jobs[name].error = raw, error

    def submit(self, job: dict[str, Any]) -> JobStatus:
        self._answer()
        self.submissions.append(job["name"])
        if job["name"] not in self.jobs:
            self._accept(job)
        return self._status(job["name"])

    def problems(self, job: dict[str, Any]) -> list[Problem]:
        found = [
            Problem(key, "Missing data for required field.") for key in ("command", "environment") if not job.get(key)
        ]
        timeout = (job.get("limits") or {}).get("timeout", 0)
        if not isinstance(timeout, int):
            found.append(Problem("limits.timeout", "Not a valid integer."))
        return found

    def status(self, name: str) -> JobStatus | None:
        self._answer()
        return self._status(name) if name in self.jobs else None

    def cancel(self, name: str) -> None:
        self._answer()
        if name in self.jobs and _RAW_STATES[self.jobs[name].raw] not in FINAL:
            self.set(name, "Canceled")

    def active(self) -> list[tuple[str, str]]:
        self._answer()
        alive = [(n, j) for n, j in reversed(self.jobs.items()) if _RAW_STATES[j.raw] not in FINAL]
        return [(name, _cluster_of(job.spec)) for name, job in alive]

    def logs(self, name: str) -> Place:
        return Place("azureml", f"ExperimentRun/dcid.{name}/")

    def place(self, path: str) -> Place:
        datastore, _, folder = path.partition("datastores/")[2].partition("/paths/")
        if datastore not in self.datastores:
            raise NotFound(
                f"{path!r} names no datastore of the workspace; they are {', '.join(sorted(self.datastores))}"
            )
        return Place(self.datastores[datastore], folder)

    def register_code(self, folder: str, digest: str) -> str:
        return self.assets.setdefault(("code", digest), f"azureml:trainyard-{digest[:16]}:1")

    def register_environment(self, file: str, digest: str) -> str:
        return self.assets.setdefault(("environment", digest), f"azureml:trainyard:{digest[:16]}")

    def check(self) -> None:
        self._answer()

    def _accept(self, job: dict[str, Any]) -> None:
        if problems := self.problems(job):
            raise BadInput("; ".join(f"{p.path}: {p.message}" for p in problems))
        if _cluster_of(job) not in self.clusters:
            raise BadInput(f"there is no compute {_cluster_of(job)!r}; there are {', '.join(sorted(self.clusters))}")
        self.jobs[job["name"]] = _Job(json.loads(json.dumps(job)))

    def _status(self, name: str) -> JobStatus:
        job = self.jobs[name]
        return JobStatus(name, _RAW_STATES[job.raw], job.raw, job.error)

    def _answer(self) -> None:
        if self.down:
            raise Unavailable("Azure ML doesn't answer")


def _cluster_of(job: dict[str, Any]) -> str:
    return str(job.get("compute", "")).removeprefix("azureml:")


class FakeClusters:
    def __init__(self, clusters: Iterable[Cluster] = ()) -> None:
        self.clusters = {cluster.name: cluster for cluster in clusters}
        self.zeroed: list[str] = []  # the clusters that were really changed, in order

    def list(self) -> list[Cluster]:
        return [self.clusters[name] for name in sorted(self.clusters)]

    def to_zero(self, name: str) -> None:
        if name not in self.clusters:
            raise NotFound(f"there is no cluster {name!r}")
        if self.clusters[name].min_nodes:
            self.clusters[name] = replace(self.clusters[name], min_nodes=0)
            self.zeroed.append(name)


# --- events ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    kind: str
    subject: str
    data: dict[str, Any] = field(hash=False)
    event_id: str = ""
    at: datetime | None = None


class FakeEvents:
    """`published` holds every call; `distinct` what a consumer sees that looks at ids."""

    def __init__(self) -> None:
        self.published: list[Published] = []

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        self.published.append(Published(kind, subject, data, event_id, at))

    def distinct(self) -> list[Published]:
        return list({event.event_id: event for event in self.published}.values())
