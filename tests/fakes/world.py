"""The whole system on fakes, with an uploader, an Event Grid and an Azure ML that play against it.

Queue messages go to the same service calls as in functions/, one at a time, in any order that a test chooses.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from shared.clusters.model import Cluster
from shared.jobs.batchai.reader import BatchAIJobs
from shared.jobs.ports import Readers
from shared.jobs.readers.azureml import read_job
from shared.jobs.readers.command_job import CommandJobs
from shared.jobs.route import JobFileRule, Route
from shared.kernel.at_once import at_once
from shared.kernel.errors import TrainyardError
from shared.kernel.storage import Place
from shared.messages import declared
from shared.notices.ports import Post
from shared.reconcile import reconcile
from shared.runs.model import Run
from shared.runs.names import run_of_job
from shared.runs.results.archive import MANIFEST
from shared.runs.results.outputs import archive_folder
from shared.system import System
from tests.fakes.features import of_features
from tests.fakes.ports import (
    Clock,
    Crash,
    Crashing,
    FakeBlobs,
    FakeBooks,
    FakeClusters,
    FakeDecisions,
    FakeDrops,
    FakeEvents,
    FakeJobs,
    FakeLeases,
    FakeModels,
    FakeNotices,
    FakeQueues,
    FakeRegistry,
    FakeRemovals,
    FakeRuns,
    FakeSamples,
    FakeSchedules,
    FakeSender,
    FakeSigner,
)

TEMPLATE: dict[str, Any] = {
    "command": "python mnist/train.py --data ${{inputs.data}} --epochs ${{inputs.epochs}}",
    "code": "..",
    "environment": "azureml:trainyard@latest",
    "inputs": {"data": {"type": "uri_folder", "path": "azureml://datastores/drops/paths/example/"}, "epochs": 2},
    "outputs": {name: {"type": "uri_folder"} for name in ("models", "metrics", "checkpoints")},
    "distribution": {"type": "pytorch", "process_count_per_instance": 1},
}
ELASTIC = {**TEMPLATE, "command": "python -m elastic.launch cifar_elastic/train.py --data ${{inputs.data}}"}
ROUTE = Route("mnist", read_job(TEMPLATE), "mnist", "cpu-cluster", 2, 4, "digits", 3600, 60, 3, 600, JobFileRule())

CODE_FILES = ("environment.yaml", "conda.yaml", "environment-gpu.yaml", "conda-gpu.yaml", "train.py")


def trainers_folder(tmp: Path) -> Path:
    """A small code snapshot, written once: a test may make hundreds of worlds with it."""
    if not (tmp / CODE_FILES[-1]).exists():
        for name in CODE_FILES:
            (tmp / name).write_text(name)
    return tmp


PERIOD = 300  # seconds between two runs of a timer, as functions/ sets them
# Periods of the timers from the end of the faults until all work is finished. The first may come too early: a run
# younger than looks.PATIENCE is left to its message, and an hour that was just claimed to its claimer, which may be
# dead. The second reads everything. The third finishes the rest: members whose GRACE is over, and a message whose
# process died at the last moment, which is visible again after ten minutes.
PERIODS = 3


class World:
    """`system` is what the handlers use; `crashes` gives one word per port call, as fakes.ports.Crashing reads
    them."""

    def __init__(self, trainers: Path, routes: Iterable[Route] = (ROUTE,)) -> None:
        self.clock = Clock()
        self.drops, self.runs, self.decisions = FakeDrops(), FakeRuns(), FakeDecisions()
        self.samples, self.leases, self.books = FakeSamples(), FakeLeases(), FakeBooks()
        self.queues, self.blobs = FakeQueues(self.clock), FakeBlobs(self.clock)
        self.jobs, self.events = FakeJobs(clock=self.clock), FakeEvents()
        self.notices, self.sender, self.schedules = FakeNotices(), FakeSender(), FakeSchedules()
        self.removals = FakeRemovals()
        self.journals: dict[str, Any] = {}  # the content of the features' own stores
        self.models, self.signer, self.registry = FakeModels(), FakeSigner(), FakeRegistry()
        self.clusters = FakeClusters([Cluster("cpu-cluster", 1, 4, 120)])
        self.goes_on = False  # whether an upload is handled at once, as the app's triggers do
        self.in_flight: list[dict[str, Any]] = []  # events that Event Grid has not delivered yet
        tokens = itertools.count(1)
        self.system = System(
            self.drops, self.runs, self.queues, self.blobs, self.jobs, self.clusters, self.decisions, self.samples,
            self.leases, self.events,
            {route.name: route for route in routes}, trainers, self.clock, lambda: f"token{next(tokens)}",
            books=self.books, models=self.models, signer=self.signer, registry=self.registry,
            reader=Readers((BatchAIJobs(), CommandJobs())), post=self.post, schedules=self.schedules,
            removals=self.removals, features=self.stores(),
        )  # fmt: skip

    def stores(self, words: Iterable[str] = ()) -> dict[str, Any]:
        """Return the features' own stores, as a new process has them."""
        found = (module.stores(self.journals, words) for module in of_features("tests.fakes"))
        return {name: store for stores in found for name, store in stores.items()}

    @property
    def post(self) -> Post:
        return Post(self.notices, self.sender)

    def crashing(self, schedule: Iterable[str]) -> System:
        """Return the system with every port except the clock behind one shared schedule of crashes."""
        words = iter(schedule)
        names = (
            *("drops", "runs", "queues", "blobs", "jobs", "clusters", "decisions", "samples", "leases", "books"),
            *("models", "events", "schedules", "removals"),
        )
        ports: dict[str, Any] = {name: Crashing(getattr(self.system, name), words) for name in names}
        post = Post(Crashing(self.notices, words), Crashing(self.sender, words))
        return replace(self.system, post=post, features=self.stores(words), **ports)

    # the uploader, Event Grid and Azure ML

    def complete(self, *names: str, job_file: str = "") -> None:
        """Upload files and a marker into mnist/a, and handle all messages."""
        for name in names:
            self.upload(f"mnist/a/{name}")
        if job_file:
            self.upload("mnist/a/job.yaml", job_file.encode("latin-1"))
        else:
            self.upload("mnist/a/_SUCCESS", b"")
        self.deliver_all()
        for _ in range(2):
            self.clock.advance(4)
            self.run_until_idle()

    def upload(self, name: str, data: bytes = b"x", container: str = "drops") -> dict[str, Any]:
        """Write a blob. Its event is in flight until `deliver`."""
        blob = self.blobs.put(container, name, data)
        event = {
            "id": f"{name}{blob.etag}",
            "eventType": "Microsoft.Storage.BlobCreated",
            "subject": f"/blobServices/default/containers/{container}/blobs/{name}",
            "eventTime": self.clock().isoformat(),
            "data": {"api": "PutBlob", "eTag": blob.etag, "contentLength": blob.size},
        }
        self.in_flight.append(event)
        return event

    def deliver(self, event: dict[str, Any]) -> None:
        """Put an event on its queue, as Event Grid does, any number of times."""
        queue = "job-events" if "MachineLearning" in event["eventType"] else "drop-events"
        self.queues.put(queue, base64.b64encode(json.dumps(event).encode()).decode())

    def deliver_all(self) -> None:
        while self.in_flight:
            self.deliver(self.in_flight.pop(0))

    def job_goes(self, name: str, raw: str, error: str = "") -> None:
        """Let Azure ML move the job to a state, write what the job has written by then, and put an event in flight."""
        self.jobs.set(name, raw, error)
        prefix = f"ExperimentRun/dcid.{name}/user_logs/"
        self.blobs.put("azureml", f"{prefix}std_log_process_0.txt", f"{raw}\n".encode())
        if raw in ("Completed", "Failed"):
            folder = f"trainyard/{run_of_job(name)}"
            self.blobs.put("azureml-blobstore", f"{folder}/models/model.pt", name.encode())
            metrics = b'{"step": 1, "test_accuracy": 0.9}\n{"step": 2, "test_accuracy": 0.8}\n'
            self.blobs.put("azureml-blobstore", f"{folder}/metrics/metrics.jsonl", metrics)
            self.blobs.put("azureml-blobstore", f"{folder}/checkpoints/1/state", b"state")
        kind = "Microsoft.MachineLearningServices.RunStatusChanged"
        at, data = self.clock().isoformat(), {"RunId": name, "runStatus": raw}
        self.in_flight.append({"id": name, "eventType": kind, "subject": "s", "eventTime": at, "data": data})

    # the Functions host

    def handle(self, queue: str, index: int = 0, crashes: Iterable[str] = ()) -> bool:
        """Give one message to its handler. If the handler dies or fails, the message is visible again 5 seconds
        later."""
        message = self.queues.take(queue, index)
        if message is None:
            return False
        try:
            decoded = declared.decode(queue, message.text.encode())
            if decoded is not None:
                inline = decoded.inline if self.goes_on else ()
                with at_once(self.crashing(crashes), inline, declared.handle) as system:
                    declared.handle(system, decoded)
        except (Crash, TrainyardError):
            message.visible_at = self.clock() + timedelta(seconds=5)
            self.queues.messages[queue].append(message)
        return True

    def poison(self, queue: str, index: int = 0) -> Any:
        """Let a message fail so often that the host moves it to the poison queue. Return the message's body."""
        return message.body if (message := self.queues.take(queue, index)) else None

    def reconcile(self, crashes: Iterable[str] = ()) -> None:
        """Fire the timer, and make the checks that it requests."""
        try:
            reconcile(self.crashing(crashes), self.schedules)
        except (Crash, TrainyardError):
            return
        while self.handle("checks"):
            pass

    def run_until_idle(self, limit: int = 10_000) -> None:
        """Handle every visible message until there is none, without faults."""
        for _ in range(limit):
            if not any(self.handle(queue) for queue in declared.QUEUES):
                return
        raise AssertionError(f"messages breed: {self.queues.messages}")

    def settle(self) -> None:
        """End all faults, and let a few periods of the timers pass, in which jobs end."""
        for _ in range(PERIODS):
            self.clock.advance(PERIOD)
            self.deliver_all()
            self.run_until_idle()
            for name, job in self.jobs.jobs.items():
                if job.raw not in ("Completed", "Failed", "Canceled"):
                    self.job_goes(name, "Completed")
            self.reconcile()
            self.run_until_idle()

    # checks at the end

    def unsettled(self) -> list[str]:
        """Return the names of the runs that are not archived yet."""
        return [run.name for run in self.runs.newest(1000) if run.archive.at is None]

    def only_run(self) -> Run:
        (run,) = self.runs.newest()
        return run

    def manifest(self, run: Run) -> Any:
        content = self.blobs.containers.get("output", {}).get(f"{archive_folder(run)}/{MANIFEST}")
        return json.loads(content.data) if content else None

    def archived(self, run: Run) -> set[str]:
        place = Place("output", f"{archive_folder(run)}/")
        return {blob.name.removeprefix(place.prefix) for blob in self.blobs.list(place)}
