"""Which phase a drop is in, and how long each took: from what the API told, without a clock or I/O of its own.

The run's own phases are those of the command line. The demo adds what comes before them, and the way back to zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cli.api import phases as of_run

CLOUD, UPLOAD, SEAL, ZERO = "cloud", "upload", "seal", "to_zero"
SUBMIT, ALLOCATE, TRAIN, ARCHIVE = "submit", "allocate", "train", "archive"
OF_RUN = {SUBMIT: of_run.SUBMIT, ALLOCATE: of_run.ALLOCATE, TRAIN: of_run.TRAIN, ARCHIVE: of_run.ARCHIVE}
PHASES = {
    CLOUD: "starting the cloud",
    UPLOAD: "uploading",
    SEAL: "sealing the drop",
    **OF_RUN,
    ZERO: "cluster to zero",
}


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
    kept_for: str = ""  # who needs the cluster now that the demo does not


@dataclass(frozen=True)
class Phase:
    """One phase. `seconds` is None while it waits, runs on while it is `active`, and then stays."""

    key: str
    label: str
    seconds: float | None
    active: bool


def phases(seen: Seen, now: datetime) -> list[Phase]:
    """All phases in order. Those that are over have their time, the first that is not runs, the others wait."""
    sealed, archived = _moment(seen.run.get("created_at")), _moment(seen.run.get("archived_at"))
    return [
        _between(CLOUD, seen.began, seen.cloud_up, now),
        _between(UPLOAD, seen.cloud_up, seen.uploaded, now),
        _between(SEAL, seen.uploaded, sealed, now),
        *_of_run(seen.run, now),
        _between(ZERO, None if seen.kept_for else archived, seen.at_zero if archived else None, now),
    ]


def _between(key: str, begin: datetime | None, end: datetime | None, now: datetime) -> Phase:
    """The time between two moments. The app dates some of them by its own clock, so they may be the wrong way round."""
    seconds = max(0.0, ((end or now) - begin).total_seconds()) if begin else None
    return Phase(key, PHASES[key], seconds, active=begin is not None and end is None)


def _of_run(run: dict[str, Any], now: datetime) -> list[Phase]:
    """The run's phases. One that was skipped, since events get lost, took no time."""
    times, current = (of_run.spent(run, now), of_run.phase(run)) if run else ({}, of_run.SUBMIT)
    order = list(OF_RUN.values())
    over = order[: order.index(current)] if current else order
    return [
        Phase(key, name, times.get(name, 0.0 if name in over else None), active=bool(run) and name == current)
        for key, name in OF_RUN.items()
    ]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
