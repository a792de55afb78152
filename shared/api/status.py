"""Health and status: what answers, what waits, what went wrong."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from shared.api import queries, records
from shared.api.queries import Ports as QueriesPorts
from shared.clusters.ports import HasLeases, HasSweeps
from shared.kernel.errors import TrainyardError
from shared.kernel.has import HasBlobs, HasQueues
from shared.kernel.places import QUEUES

KEPT_FOR = timedelta(seconds=10)
_lock = threading.Lock()
_kept: WeakKeyDictionary[object, tuple[datetime | None, dict[str, Any]]] = WeakKeyDictionary()
LISTED = 50  # open and rejected drops shown


class Ports(QueriesPorts, HasQueues, HasBlobs, HasSweeps, HasLeases, Protocol):
    """What is needed here from outside."""


def health(ports: Ports) -> dict[str, Any]:
    """Whether storage and workspace answer. Anyone may ask, so the detail is a code; `status` has the words.

    The answer is kept for some seconds: whoever asks often costs no more than whoever asks once.
    """
    with _lock:
        asked_at, answer = _kept.get(ports, (None, {}))
        if asked_at is None or ports.clock() - asked_at >= KEPT_FOR:
            answer = _health(ports)
            _kept[ports] = (ports.clock(), answer)
    return answer


def _health(ports: Ports) -> dict[str, Any]:
    errors = _errors(ports)
    checks = {name: {"ok": exc is None, "detail": exc.code if exc else ""} for name, exc in errors.items()}
    return {"status": "degraded" if any(errors.values()) else "ok", "checks": checks}


def _errors(ports: Ports) -> dict[str, TrainyardError | None]:
    return {"storage": _error(ports.blobs.check), "workspace": _error(ports.jobs.check)}


def _error(call: Callable[[], None]) -> TrainyardError | None:
    try:
        call()
    except TrainyardError as exc:
        return exc
    return None


def status(ports: Ports) -> dict[str, Any]:
    """Queues with their poison messages, drops that wait or were rejected, the newest runs, and the clusters."""
    errors = _errors(ports)
    waiting, poison = ports.queues.counts(QUEUES), ports.queues.counts(f"{q}-poison" for q in QUEUES)
    return {
        "checks": {name: str(exc) if exc else "ok" for name, exc in errors.items()},
        "queues": {q: {"messages": waiting[q], "poison": poison[f"{q}-poison"]} for q in QUEUES},
        "poison": {q: ports.queues.peek(f"{q}-poison") for q in QUEUES if poison[f"{q}-poison"]},
        "drops": [
            records.drop(drop)
            for drop in (*itertools.islice(ports.drops.open(), LISTED), *ports.drops.rejected(LISTED))
        ],
        "runs": [queries.told(ports, run) for run in ports.runs.newest(10)],
        "clusters": [] if errors["workspace"] else clusters(ports),
    }


def leases(ports: Ports) -> list[dict[str, Any]]:
    now = ports.clock()
    return [records.lease(lease, now) for lease in ports.leases.open() if lease.holds(now)]


def clusters(ports: Ports) -> list[dict[str, Any]]:
    return [records.cluster(c, ports.sweeps.latest(c.name)) for c in ports.clusters.list()]
