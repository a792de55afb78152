"""Which phase a drop is in, and how long each took: from what the API told, without a clock or I/O of its own.

Seconds come from the moments that the system itself recorded (the drop's sealing, the run's history), so they do not
depend on how often the demo asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

CLOUD, UPLOAD, SEAL, SUBMIT = "cloud", "upload", "seal", "submit"
ALLOCATE, TRAIN, ARCHIVE, ZERO = "allocate", "train", "archive", "to_zero"
PHASES = {
    CLOUD: "local cloud up",
    UPLOAD: "upload to drops/",
    SEAL: "drop sealed",
    SUBMIT: "job submitted",
    ALLOCATE: "nodes allocated",
    TRAIN: "training",
    ARCHIVE: "archived",
    ZERO: "cluster at zero",
}
FINAL = ("completed", "failed", "canceled")


@dataclass
class Seen:
    """What the demo has seen so far. The three moments are the demo's own; the rest is the API's last answer."""

    began: datetime
    cloud_up: datetime | None = None
    uploaded: datetime | None = None
    drop: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    at_zero: datetime | None = None


@dataclass(frozen=True)
class Phase:
    """One phase. `seconds` is None while it waits, runs on while it is `active`, and then stays."""

    key: str
    label: str
    seconds: float | None
    active: bool


def phases(seen: Seen, now: datetime) -> list[Phase]:
    """All phases in order. Those that are over have their time, the first that is not runs, the others wait."""
    ends = [seen.began, *_ends(seen)]
    rows = []
    for (key, label), (begin, end) in zip(PHASES.items(), pairwise(ends), strict=True):
        active = begin is not None and end is None
        stop = now if active else end
        seconds = max(0.0, (stop - begin).total_seconds()) if begin and stop else None
        rows.append(Phase(key, label, seconds, active))
    return rows


def _ends(seen: Seen) -> list[datetime | None]:
    """When each phase ended. A moment that was never seen takes the next one's place, since states may be skipped."""
    sealed = _moment(seen.drop.get("sealed_at")) if seen.run else None
    ends = [
        seen.cloud_up,
        seen.uploaded,
        sealed,
        _first(_entries(seen, "submitted", "queued")),
        _last(_entries(seen, "running")),  # after a preemption, the last time counts
        _last(_entries(seen, *FINAL)),
        _moment(seen.run.get("archived_at")),
        seen.at_zero,
    ]
    for i in reversed(range(len(ends) - 1)):
        ends[i] = ends[i] or ends[i + 1]
    for i in range(1, len(ends)):  # two clocks took part; a phase ends no earlier than the one before
        before, end = ends[i - 1], ends[i]
        ends[i] = max(before, end) if before and end else end
    return ends


def _entries(seen: Seen, *states: str) -> list[datetime]:
    """When the run entered one of these states, each time."""
    return [datetime.fromisoformat(m["at"]) for m in seen.run.get("history", []) if m["state"] in states]


def _first(moments: list[datetime]) -> datetime | None:
    return moments[0] if moments else None


def _last(moments: list[datetime]) -> datetime | None:
    return moments[-1] if moments else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
