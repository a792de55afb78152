"""A problem of a job: its place, a message, and a code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One fault in a job: where (a path like `limits.timeout`), what, and a stable code."""

    path: str
    message: str
    code: str = "bad_job"
