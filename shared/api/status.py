"""What a person asks: is it healthy, what waits, what went wrong."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from shared.api import queries, records
from shared.kernel.errors import TrainyardError
from shared.kernel.places import QUEUES
from shared.system import System

KEPT_FOR = timedelta(seconds=10)
_lock = threading.Lock()
_kept: WeakKeyDictionary[System, tuple[datetime | None, dict[str, Any]]] = WeakKeyDictionary()
LISTED = 50  # open and rejected drops shown


def health(system: System) -> dict[str, Any]:
    """Whether storage and workspace answer. Anyone may ask, so the detail is a code; `status` has the words.

    The answer is kept for some seconds: whoever asks often costs no more than whoever asks once.
    """
    with _lock:
        asked_at, known = _kept.get(system, (None, {}))
        if asked_at is None or system.clock() - asked_at >= KEPT_FOR:
            known = _health(system)
            _kept[system] = (system.clock(), known)
    return known


def _health(system: System) -> dict[str, Any]:
    errors = _errors(system)
    checks = {name: {"ok": exc is None, "detail": exc.code if exc else ""} for name, exc in errors.items()}
    return {"status": "degraded" if any(errors.values()) else "ok", "checks": checks}


def _errors(system: System) -> dict[str, TrainyardError | None]:
    return {"storage": _error(system.blobs.check), "workspace": _error(system.jobs.check)}


def _error(call: Callable[[], None]) -> TrainyardError | None:
    try:
        call()
    except TrainyardError as exc:
        return exc
    return None


def status(system: System) -> dict[str, Any]:
    """Queues with their poison messages, drops that wait or were rejected, the newest runs, and the clusters."""
    errors = _errors(system)
    waiting, poison = system.queues.counts(QUEUES), system.queues.counts(f"{q}-poison" for q in QUEUES)
    return {
        "checks": {name: str(exc) if exc else "ok" for name, exc in errors.items()},
        "queues": {q: {"messages": waiting[q], "poison": poison[f"{q}-poison"]} for q in QUEUES},
        "poison": {q: system.queues.peek(f"{q}-poison") for q in QUEUES if poison[f"{q}-poison"]},
        "drops": [
            records.drop(drop)
            for drop in (*itertools.islice(system.drops.open(), LISTED), *system.drops.rejected(LISTED))
        ],
        "runs": [queries.told(system, run) for run in system.runs.newest(10)],
        "clusters": [] if errors["workspace"] else clusters(system),
    }


def leases(system: System) -> list[dict[str, Any]]:
    now = system.clock()
    return [records.lease(lease, now) for lease in system.leases.open() if lease.holds(now)]


def clusters(system: System) -> list[dict[str, Any]]:
    return [records.cluster(c, system.sweeps.latest(c.name)) for c in system.clusters.list()]
