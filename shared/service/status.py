"""What a person asks: is it healthy, what waits, what went wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from shared import rows
from shared.errors import TrainyardError
from shared.model import DropState
from shared.system import QUEUES, System

LISTED = 50  # open and rejected drops shown


def health(system: System) -> dict[str, Any]:
    """Whether storage and workspace answer, each with a detail."""
    checks = {"storage": _check(system.blobs.check), "workspace": _check(system.jobs.check)}
    return {"status": "ok" if all(c["ok"] for c in checks.values()) else "degraded", "checks": checks}


def _check(call: Callable[[], None]) -> dict[str, Any]:
    try:
        call()
    except TrainyardError as exc:
        return {"ok": False, "detail": str(exc)}
    return {"ok": True, "detail": ""}


def status(system: System) -> dict[str, Any]:
    """Queues with their poison messages, drops that wait or were rejected, the newest runs, and the clusters."""
    waiting, poison = system.queues.counts(QUEUES), system.queues.counts(f"{q}-poison" for q in QUEUES)
    unsealed = (drop for drop in system.drops.listed() if drop.state is not DropState.SEALED)
    return {
        "queues": {q: {"messages": waiting[q], "poison": poison[f"{q}-poison"]} for q in QUEUES},
        "poison": {q: system.queues.peek(f"{q}-poison") for q in QUEUES if poison[f"{q}-poison"]},
        "drops": [rows.drop(drop) for drop in itertools.islice(unsealed, LISTED)],
        "runs": [rows.run(run) for run in system.runs.newest(10)],
        "clusters": clusters(system),
    }


def clusters(system: System) -> list[dict[str, Any]]:
    return [rows.cluster(c, system.sweeps.latest(c.name)) for c in system.clusters.list()]
