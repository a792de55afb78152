"""A problem of a job: its place, a message, and a code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One problem in a job: the place (a path such as `limits.timeout`), a message, and a stable code."""

    path: str
    message: str
    code: str = "bad_job"
