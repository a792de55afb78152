"""Names of runs, of their Azure ML jobs, and of the hours in which runs were created."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from shared.kernel.drop_key import DropKey

RUN_NAME = re.compile(r"[a-z][a-z0-9-]{2,62}")


def asked_run_name(kind: str, what: str, route: str = "") -> str:
    """The name of a requested run: `run-<16 hex digits>`. Equal kinds and texts give equal names.

    The name does not depend on the request, so another request with the same Idempotency-Key finds the first request's
    run. A run that is made from another run, or from a drop, starts with the route's name instead of `run`.
    """
    return f"{_slug(route)}-{hashlib.sha256(f'{kind} {what}'.encode()).hexdigest()[:16]}"


def _slug(route: str) -> str:
    """The route with only letters, digits and dashes, starting with a letter; `run` without a route."""
    slug = re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-")[:32].strip("-")
    return slug if slug[:1].isalpha() else f"run-{slug}".strip("-")


def run_name(drop: DropKey, fingerprint: str) -> str:
    """The name of the run, and of the run's Azure ML job, for this content of this drop. Equal content gives equal
    names.

    `<route>-<16 hex digits>`, where the route keeps only letters, digits and dashes. With 64 bits, two of a million
    drops get the same name with a probability of 3e-8.
    """
    digest = hashlib.sha256(f"{drop}\n{fingerprint}".encode()).hexdigest()
    return f"{_slug(drop.route)}-{digest[:16]}"


# A run's own name ends with 16 hex digits, so it never matches.
_FURTHER_JOB = re.compile(r"(.+)-(?:m\d{1,4}-\d{1,4}|a\d{1,4})")


def plain_job(run: str, number: int) -> str:
    """The name of the Azure ML job of a run with one job at a time. The first job has the run's name."""
    return run if number == 1 else f"{run}-a{number}"


def run_of_job(job: str) -> str:
    """The name of the run to which the job belongs."""
    match = _FURTHER_JOB.fullmatch(job)
    return match[1] if match else job


def hour_of(at: datetime) -> str:
    """The hour of a run's creation, by which Azure ML lists the run's jobs: 20260131T08."""
    return f"{at.astimezone(UTC):%Y%m%dT%H}"


def start_of_hour(hour: str) -> datetime:
    """The start of an hour in this format. Raises ValueError for any other text."""
    return datetime.strptime(hour, "%Y%m%dT%H").replace(tzinfo=UTC)


def hour_has_passed(hour: str, now: datetime) -> bool:
    """Whether no new run can belong to this hour, with a margin for clocks that differ."""
    return now >= start_of_hour(hour) + timedelta(hours=1, minutes=5)
