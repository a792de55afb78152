"""The phases of a drop and their durations, computed from the API's answers, without a clock or I/O.

The run's own phases are those of the command line. The demo adds the phases before the run, and the scaling back to
zero.
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
    """The demo's knowledge so far. The demo measures the three moments; the rest is the API's last answer."""

    began: datetime
    cloud_up: datetime | None = None
    uploaded: datetime | None = None
    drop: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    at_zero: datetime | None = None
    kept_for: str = ""  # the users that need the cluster after the demo


@dataclass(frozen=True)
class Phase:
    """One phase. `seconds` is None before the phase begins, grows while the phase is `active`, and then stays."""

    key: str
    label: str
    seconds: float | None
    active: bool


def phases(seen: Seen, now: datetime) -> list[Phase]:
    """Return the phases in order. Finished phases have a duration, the first unfinished phase is active, and the others
    wait.
    """
    sealed, archived = _moment(seen.run.get("created_at")), _moment(seen.run.get("archived_at"))
    return [
        _between(CLOUD, seen.began, seen.cloud_up, now),
        _between(UPLOAD, seen.cloud_up, seen.uploaded, now),
        _between(SEAL, seen.uploaded, sealed, now),
        *_of_run(seen.run, now),
        _between(ZERO, None if seen.kept_for else archived, seen.at_zero if archived else None, now),
    ]


def _between(key: str, begin: datetime | None, end: datetime | None, now: datetime) -> Phase:
    """Return the time between two moments. Some moments come from the app's clock, so the order may be wrong."""
    seconds = max(0.0, ((end or now) - begin).total_seconds()) if begin else None
    return Phase(key, PHASES[key], seconds, active=begin is not None and end is None)


def _of_run(run: dict[str, Any], now: datetime) -> list[Phase]:
    """Return the run's phases. A phase that was skipped, because events get lost, took no time."""
    times, current = (of_run.spent(run, now), of_run.phase(run)) if run else ({}, of_run.SUBMIT)
    order = list(OF_RUN.values())
    over = order[: order.index(current)] if current else order
    return [
        Phase(key, name, times.get(name, 0.0 if name in over else None), active=bool(run) and name == current)
        for key, name in OF_RUN.items()
    ]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
