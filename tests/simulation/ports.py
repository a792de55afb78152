"""A wrapper around each fake: it switches handlers around every call, injects the faults, and reports to the oracle.

The fakes are those of the contract suites. `SimulatedJobs` adds only Azure ML's delays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from inspect import isgeneratorfunction
from random import Random
from typing import Any

from shared.drops.model import Drop
from shared.drops.ports import AlreadyAdded
from shared.jobs.model import ENDED, JobStatus
from shared.jobs.spec import HOUR_PROPERTY, JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed, Unavailable
from shared.kernel.storage import Blob, Place
from shared.kernel.versioned import Stored
from shared.runs.model import Run
from tests.fakes.azureml import _RAW_STATES, FakeJobs
from tests.fakes.crashing import Crash
from tests.fakes.records import FakeDrops, FakeRuns
from tests.fakes.storage import FakeBlobs

NO_REQUEST = frozenset(
    {"problems", "is_new", "code_id", "environment_id", "read_url", "write_url", "create_url"}
)  # methods that call no service
CONDITIONAL = frozenset(
    {"insert", "replace", "delete", "update", "append_at"}
)  # the SDK retries, and finds its own write


class SimulatedJobs(FakeJobs):
    """Azure ML with its delays: a cancel is carried out later, and a list may be as old as `stale_seconds`."""

    def __init__(self, clusters: tuple[str, ...], clock: Callable[[], datetime], random: Random) -> None:
        super().__init__(clusters)
        self.clock, self.random, self.stale_seconds = clock, random, 0.0
        self.to_end: list[str] = []  # jobs that were told to end
        self.after_end: set[str] = set()  # jobs that started after their run's end
        self.under_way: list[JobSpec] = []  # unanswered requests that are carried out later
        self.content: Callable[[str], str] = str  # the current content of the drop of a job's run
        self.read: dict[str, list[tuple[datetime, str]]] = {}  # the drop's content at a job's begin and end
        self._past: dict[str, list[tuple[datetime, str]]] = {}

    def set(self, name: str, raw: str, error: str = "") -> None:
        super().set(name, raw, error)
        if raw != "Queued" and self.jobs[name].times.began:
            self.read.setdefault(name, []).append((self.clock(), self.content(name)))
        self._past.setdefault(name, []).append((self.clock(), raw))

    def cancel(self, name: str) -> None:
        self._answer()
        if name in self.jobs and _RAW_STATES[self.jobs[name].raw] not in ENDED and name not in self.to_end:
            self.to_end.append(name)

    def listed(self, hour: str) -> Iterator[JobStatus]:
        self._answer()
        until = self.clock() - timedelta(seconds=self.random.random() * self.stale_seconds)
        for name, job in reversed(list(self.jobs.items())):
            raws = [raw for at, raw in self._past[name] if at <= until]
            if raws and (job.spec.get("properties") or {}).get(HOUR_PROPERTY) == hour:
                yield JobStatus(name, _RAW_STATES[raws[-1]], raws[-1])

    def time_out(self, job: JobSpec) -> None:
        """Let a submission time out for its caller, and carry it out later."""
        self.under_way.append(job)

    def carry_out_late(self) -> list[str]:
        """Carry out the pending requests, and return the new jobs."""
        late, self.under_way = self.under_way, []
        names = []
        for job in late:
            if job.name not in self.jobs and job.cluster in self.clusters:
                self._accept(job)
                names.append(job.name)
        return names

    def live(self) -> list[str]:
        return [name for name, job in self.jobs.items() if _RAW_STATES[job.raw] not in ENDED]

    def _accept(self, job: JobSpec) -> None:
        super()._accept(job)
        self.set(job.name, "Queued")


class StrangeDrops(FakeDrops):
    """Drops that this process has not seen before, and that a concurrent call may have added."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random

    def is_new(self, key: DropKey) -> bool:
        return self.random.random() < 0.5

    def insert(self, drop: Drop) -> Stored[Drop]:
        there = self.get(drop.key)
        if there and self.random.random() < 0.5:
            raise AlreadyAdded(there)
        return super().insert(drop)


class RememberedRuns(FakeRuns):
    """Runs whose `recent` returns any version that the row had within the last seconds."""

    SECONDS = timedelta(seconds=10)

    def __init__(self, clock: Callable[[], datetime], random: Random) -> None:
        super().__init__()
        self.clock, self.random = clock, random
        self._past: dict[str, list[tuple[datetime, Stored[Run]]]] = {}

    def recent(self, name: str) -> Stored[Run]:
        self.get(name)
        since, past = self.clock() - self.SECONDS, self._past[name]
        ended = [at for at, _ in past[1:]]
        return self.random.choice([version for (_, version), end in zip(past, [*ended, None], strict=True)
                                   if end is None or end >= since])  # fmt: skip

    def _put(self, run: Run) -> Stored[Run]:
        stored = super()._put(run)
        self._past.setdefault(run.name, []).append((self.clock(), stored))
        return stored


class PagedBlobs:
    """FakeBlobs whose listings are read in pages of one blob, so that a listing sees concurrent changes in part."""

    def __init__(self, blobs: FakeBlobs) -> None:
        self._blobs = blobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def list(self, place: Place) -> Iterator[Blob]:
        return (blob for _, blob in self.paged(place))

    def paged(self, place: Place, token: str = "", page: int = 1) -> Iterator[tuple[str, Blob]]:
        last = ""
        while blob := next((b for b in self._blobs.list(place) if b.name > last and b.name >= token), None):
            yield blob.name, blob
            last = blob.name


class Port:
    """The `target` that an invocation sees. `simulation` has the scheduler, the faults, the trace and the oracle."""

    def __init__(self, name: str, target: Any, simulation: Any) -> None:
        self._name, self._target, self._simulation = name, target, simulation

    def __getattr__(self, method: str) -> Any:
        made = getattr(self._target, method)
        if not callable(made) or method in NO_REQUEST:
            return made
        return lambda *args, **kwargs: self._call(method, made, args, kwargs)

    def _call(self, method: str, made: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        simulation = self._simulation
        if (self._name, method) == simulation.faults.slow_at and simulation.random.random() < 0.5:
            simulation.scheduler.freeze(simulation.random.choice((3, 10, 30)))
        simulation.scheduler.pause()
        word = simulation.faults.word(simulation.random, self._name)
        simulation.note(f"{self._name}.{method}", (*args, *kwargs.items()), word)
        simulation.oracle.before(self._name, method, args)
        if word == "half" and (half := getattr(self._target, f"half_{method}", None)):
            half(*args, **kwargs)
            raise Crash(f"half-way through {method}")
        if word == "before" or (word == "half" and not isgeneratorfunction(made)):  # one write has no half
            raise Crash(f"before {method}")
        if (self._name, method) == ("jobs", "submit") and simulation.times_out():
            self._target.time_out(args[0])
            word = "refuse"
        if word == "refuse":
            raise Unavailable(f"{self._name} doesn't answer")
        result = made(*args, **kwargs)
        if isgeneratorfunction(made):
            return self._items(method, result, word)
        simulation.oracle.after(self._name, method, args, result)
        if word == "after":
            raise Crash(f"after {method}")
        if word == "lost_answer":
            return self._lost(method)
        simulation.scheduler.pause()
        return result

    def _lost(self, method: str) -> Any:
        conditional = method in CONDITIONAL or (self._name, method) == ("models", "write")
        if conditional and self._simulation.random.random() < 0.5:
            if (self._name, method) == ("runs", "insert"):
                return False
            raise Changed(f"{self._name}: the write that was tried again met itself")
        raise Unavailable(f"{self._name}.{method}: no answer")

    def _items(self, method: str, items: Iterator[Any], word: str) -> Iterator[Any]:
        for item in itertools.islice(items, 1 if word in ("half", "lost_answer") else None):
            self._simulation.scheduler.pause()
            yield item
        if word in ("half", "after"):
            raise Crash(f"in {method}")
        if word == "lost_answer":
            raise Unavailable(f"{self._name}.{method}: no further page")
