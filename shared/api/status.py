"""What a person asks: is it healthy, what waits, what went wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from shared.api import answers
from shared.kernel.errors import TrainyardError
from shared.system import QUEUES, System

LISTED = 50  # open and rejected drops shown


def health(system: System) -> dict[str, Any]:
    """Whether storage and workspace answer. Anyone may ask, so the detail is a code; `status` has the words."""
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
    waiting, poison = system.queues.counts(QUEUES), system.queues.counts(f"{q}-poison" for q in QUEUES)
    return {
        "checks": {name: str(exc) if exc else "ok" for name, exc in _errors(system).items()},
        "queues": {q: {"messages": waiting[q], "poison": poison[f"{q}-poison"]} for q in QUEUES},
        "poison": {q: system.queues.peek(f"{q}-poison") for q in QUEUES if poison[f"{q}-poison"]},
        "drops": [
            answers.drop(drop)
            for drop in (*itertools.islice(system.drops.open(), LISTED), *system.drops.rejected(LISTED))
        ],
        "runs": [answers.run(run) for run in system.runs.newest(10)],
        "clusters": clusters(system),
    }


def clusters(system: System) -> list[dict[str, Any]]:
    return [answers.cluster(c, system.sweeps.latest(c.name)) for c in system.clusters.list()]
