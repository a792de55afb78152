"""The origin of a job's code, in the API's form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shared.jobs.readers.git import source_of
from shared.jobs.spec import JobSpec


def git(job: JobSpec) -> dict[str, Any] | None:
    """Return the commit, branch, repository and whether files had changed; None if the job does not state them."""
    source = source_of(job)
    return asdict(source) if source.commit else None
