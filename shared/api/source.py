"""Where a job's code came from, as the API tells it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shared.jobs.readers.git import source_of
from shared.jobs.spec import JobSpec


def git(job: JobSpec) -> dict[str, Any] | None:
    """The commit, the branch, the repository and whether files were changed since; None if the job says nothing."""
    source = source_of(job)
    return asdict(source) if source.commit else None
