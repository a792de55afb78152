"""Health and status: answering services, waiting work, and failures."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from shared.api import answers, queries, records
from shared.clusters.azureml_cache import waiting as waiting_for
from shared.clusters.model import Cluster
from shared.clusters.ports import ClusterPorts
from shared.clusters.waiting import WAITING
from shared.drops.ports import DropPorts
from shared.kernel.encode import Json
from shared.kernel.errors import NoAnswer, TrainyardError
from shared.kernel.memory import Topic
from shared.messages.declared import QUEUES
from shared.messages.poison import POISON, is_done
from shared.runs.model import Run
from shared.runs.ports import RunFields, Runs
from shared.runs.views.run_list import in_state

HEALTH = Topic[dict[str, Any]]("health", timedelta(seconds=10))
SECONDS_SHOWN = timedelta(seconds=5)
SHOWN_QUEUES = Topic[dict[str, Any]]("queues shown", SECONDS_SHOWN)
SHOWN_CLUSTERS = Topic[list[dict[str, Any]]]("clusters shown", SECONDS_SHOWN)
PATIENCE = 3.0  # seconds that a service may take to answer
LONGEST_READ = 20.0  # seconds for reading the status from storage that answers
HEALTH_CURSOR = "health"  # one row, written at most every ten seconds by each process
LISTED = 50  # open and rejected drops that are shown, and runs per cluster that wait
MOST_WAITING = 1000  # waiting runs read per state; costs one request


def health(ports: DropPorts) -> dict[str, Any]:
    """Return whether storage and workspace answer. Anyone may call this, so details are codes; `status` has the
    sentences.

    The answer is cached for some seconds, so frequent callers cost no more than rare ones.
    """
    return ports.memory.answer(HEALTH, ports.clock(), lambda: _health(ports))


def _health(ports: DropPorts) -> dict[str, Any]:
    errors = _errors(asked(ports))
    checks = {name: {"ok": exc is None, "detail": exc.code if exc else ""} for name, exc in errors.items()}
    return {"status": "degraded" if any(errors.values()) else "ok", "checks": checks}


def _errors(answers: Mapping[str, Future[None]]) -> dict[str, TrainyardError | None]:
    wait(answers.values(), PATIENCE)
    return {name: _error(name, answer) for name, answer in answers.items()}


def _error(name: str, answer: Future[Any], seconds: float = PATIENCE) -> TrainyardError | None:
    if not answer.done():
        return NoAnswer(f"The {name} did not answer for {seconds:g} s.")
    exc = answer.exception()
    if exc is not None and not isinstance(exc, TrainyardError):
        raise exc
    return exc


class Questions:
    """Checks whether services answer. Each service has at most one open check; concurrent callers share the answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(8, "check")
        self._readers = ThreadPoolExecutor(4, "status")
        self._open: dict[str, Future[None]] = {}

    def read(self, what: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
        """Start a read that may never get an answer, because a client of storage retries for minutes."""
        return self._readers.submit(what)

    def ask(self, checks: Mapping[str, Callable[[], None]]) -> dict[str, Future[None]]:
        with self._lock:
            for name, check in checks.items():
                if name not in self._open or self._open[name].done():
                    self._open[name] = self._threads.submit(check)
            return dict(self._open)


QUESTIONS = Topic[Questions]("questions to services")


def asked(ports: DropPorts) -> dict[str, Future[None]]:
    """Start checking whether storage and workspace answer."""
    checks: dict[str, Callable[[], None]] = {"storage": partial(_check_storage, ports), "workspace": ports.jobs.check}
    return ports.memory.one(QUESTIONS, Questions).ask(checks)


def _check_storage(ports: DropPorts) -> None:
    """Raise Unavailable unless the account answers and stores a row, because an account with a full disk answers,
    too.
    """
    ports.blobs.check()
    ports.drops.move_cursor(HEALTH_CURSOR, ports.clock().isoformat())


def get_status(ports: ClusterPorts) -> Annotated[Json, answers.Status]:
    """Return queues with relevant poison messages, waiting and rejected drops, newest runs, and clusters.

    Without storage all of these are empty, and without the workspace the clusters are: `checks` says which of the two
    does not answer. The queues and the clusters are at most SECONDS_SHOWN old: reading them takes two thirds of the
    requests.
    """
    checks = asked(ports)  # read beside the rest
    reading = ports.memory.one(QUESTIONS, Questions).read(partial(_stored, ports))
    errors = _errors(checks)
    if errors["storage"] is None:
        wait([reading], LONGEST_READ)
        errors["storage"] = _error("storage", reading, LONGEST_READ)
    stored = {} if errors["storage"] else reading.result()
    reading.cancel()  # cancel a read that has not begun, because no caller waits for it
    return {
        "checks": {name: str(exc) if exc else "ok" for name, exc in errors.items()},
        **(stored or {"queues": {}, "poison": {}, "drops": [], "runs": []}),
        "clusters": []
        if any(errors.values())
        else ports.memory.answer(SHOWN_CLUSTERS, ports.clock(), lambda: list_clusters(ports)),
    }


def _stored(ports: ClusterPorts) -> dict[str, Any]:
    """Return the parts of the status that are in storage."""
    drops = (*itertools.islice(ports.drops.open(), LISTED), *ports.drops.rejected(LISTED))
    runs = [queries.shown_run(ports, run) for run in ports.runs.newest(10)]
    return {**queues(ports), "drops": [records.drop(drop) for drop in drops], "runs": runs}


def storage_error(ports: DropPorts) -> TrainyardError | None:
    """Return why storage does not answer within PATIENCE; None if it does."""
    return _errors({"storage": asked(ports)["storage"]})["storage"]


def queues(ports: ClusterPorts) -> dict[str, Any]:
    """Return the queues as `_queues` does, at most SECONDS_SHOWN old."""
    return ports.memory.answer(SHOWN_QUEUES, ports.clock(), lambda: _queues(ports))


def _queues(ports: ClusterPorts) -> dict[str, Any]:
    """Return each queue's messages, how many of its poison messages still matter, and the texts of the first ones."""
    counts = ports.queues.counts([*QUEUES, *(f"{q}{POISON}" for q in QUEUES)])
    texts = {q: ports.queues.peek(f"{q}{POISON}") for q in QUEUES if counts[f"{q}{POISON}"]}
    left = {q: [text for text in its if not is_done(ports, q, text)] for q, its in texts.items()}
    done = {q: len(its) - len(left[q]) for q, its in texts.items()}
    return {
        "queues": {q: {"messages": counts[q], "poison": counts[f"{q}{POISON}"] - done.get(q, 0)} for q in QUEUES},
        "poison": {q: its for q, its in left.items() if its},
    }


def list_leases(ports: ClusterPorts) -> Annotated[list[Json], list[records.LeaseAnswer]]:
    now = ports.clock()
    return [records.lease(lease, now) for lease in ports.leases.open() if lease.holds(now)]


def list_clusters(ports: ClusterPorts) -> Annotated[list[Json], list[records.ClusterAnswer]]:
    """Return the clusters, each with the latest decision and the runs in its queue."""
    waiting = _waiting(ports.runs)
    return [_cluster(ports, cluster, waiting.get(cluster.name, [])) for cluster in ports.clusters.list()]


def _cluster(ports: ClusterPorts, cluster: Cluster, waiting: list[Run]) -> dict[str, Any]:
    first = [records.waiting_run(run, waiting_for(ports, run)) for run in waiting[:LISTED]]
    return records.cluster(cluster, ports.decisions.latest(cluster.name), first, len(waiting))


def _waiting(runs: Runs) -> dict[str, list[Run]]:
    """Return the waiting runs by cluster, oldest first."""
    in_states = (in_state(runs, state, RunFields.NODES) for state in WAITING)
    waiting = [run for found in in_states for run in itertools.islice(found, MOST_WAITING)]
    by_cluster: dict[str, list[Run]] = {}
    for run in sorted(waiting, key=lambda run: run.created_at):
        by_cluster.setdefault(run.on_cluster, []).append(run)
    return by_cluster
