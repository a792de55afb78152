"""Names: of runs, of their jobs at Azure ML, and of the hours in which runs were made."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from shared.kernel.drop_key import DropKey

RUN_NAME = re.compile(r"[a-z][a-z0-9-]{2,62}")


def asked_run_name(kind: str, what: str, route: str = "") -> str:
    """The name of the run that someone asked for: `run-<16 hex digits>`, the same for the same kind and text.

    It says nothing of what was asked, so that another request under the same Idempotency-Key meets the first one's run.
    One that is made from another run, or from a drop, keeps the name of the route.
    """
    return f"{_slug(route)}-{hashlib.sha256(f'{kind} {what}'.encode()).hexdigest()[:16]}"


def _slug(route: str) -> str:
    """The route with only letters, digits and dashes, and a letter first; `run` for none."""
    slug = re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-")[:32].strip("-")
    return slug if slug[:1].isalpha() else f"run-{slug}".strip("-")


def run_name(drop: DropKey, fingerprint: str) -> str:
    """The name of the run, and of its Azure ML job, that this content of this drop makes: always the same one.

    `<route>-<16 hex digits>`, where the route keeps only letters, digits and dashes. 64 bits: two drops in a million
    meet with a probability of 3e-8.
    """
    digest = hashlib.sha256(f"{drop}\n{fingerprint}".encode()).hexdigest()
    return f"{_slug(drop.route)}-{digest[:16]}"


# A run's own name ends with 16 digits, so it is none of these.
_FURTHER_JOB = re.compile(r"(.+)-(?:m\d{1,4}-\d{1,4}|a\d{1,4})")


def member_job(run: str, index: int, attempt: int) -> str:
    """The name of the Azure ML job of a member of an elastic run."""
    return f"{run}-m{index}-{attempt}"


def plain_job(run: str, number: int) -> str:
    """The name of the Azure ML job of a run that is one job at a time: the first has the run's own."""
    return run if number == 1 else f"{run}-a{number}"


def run_of_job(job: str) -> str:
    """The name of the run that a job of this name belongs to."""
    match = _FURTHER_JOB.fullmatch(job)
    return match[1] if match else job


def hour_of(at: datetime) -> str:
    """The hour of a run's making, by which Azure ML lists its jobs: 20260131T08."""
    return f"{at.astimezone(UTC):%Y%m%dT%H}"


def start_of_hour(hour: str) -> datetime:
    """The beginning of such an hour. Raises ValueError for other text."""
    return datetime.strptime(hour, "%Y%m%dT%H").replace(tzinfo=UTC)


def hour_has_passed(hour: str, now: datetime) -> bool:
    """Whether no new run can be of this hour, with some time for clocks that differ."""
    return now >= start_of_hour(hour) + timedelta(hours=1, minutes=5)
